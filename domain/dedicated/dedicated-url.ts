const PATH = '/api/stream/dedicated/';

/** The only path that a dedicated process serves. */
export function dedicatedPath(name: string): string {
  return PATH + name;
}

/**
 * The URL of a dedicated socket for customers.
 * @param template e.g. `ws://host:{port}`, or `wss://{name}.host` behind a proxy, or both
 */
export function dedicatedUrl(
  template: string,
  { name, port }: { readonly name: string; readonly port: number },
): string {
  const origin = template.replaceAll('{name}', name).replaceAll('{port}', String(port));
  return origin.replace(/\/$/, '') + dedicatedPath(name);
}
