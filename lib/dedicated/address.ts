const PATH = '/api/stream/dedicated/';

/** The path under which a dedicated process serves, and no other. */
export function dedicatedPath(name: string): string {
  return PATH + name;
}

/**
 * Where customers find a dedicated socket.
 * @param template `ws://host:{port}`, or `wss://{name}.host`, or both; a proxy may stand there
 */
export function dedicatedUrl(
  template: string,
  { name, port }: { readonly name: string; readonly port: number },
): string {
  const origin = template.replaceAll('{name}', name).replaceAll('{port}', String(port));
  return origin.replace(/\/$/, '') + dedicatedPath(name);
}
