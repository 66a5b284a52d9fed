const PATH = '/api/stream/dedicated/';

/** The only path that a dedicated process serves. */
export function dedicatedPath(name: string): string {
  return PATH + name;
}

interface DedicatedSocket {
  readonly name: string;
  readonly port: number;
}

/**
 * The public address of a dedicated process, without its path.
 * @param template e.g. `ws://host:{port}`, or `wss://{name}.host` or `wss://host/{port}` behind a proxy
 */
export function dedicatedAddress(template: string, { name, port }: DedicatedSocket): string {
  const address = template.replaceAll('{name}', name).replaceAll('{port}', String(port));
  return address.replace(/\/$/, '');
}

/** The URL of a dedicated socket for customers. @param template as of `dedicatedAddress` */
export function dedicatedUrl(template: string, socket: DedicatedSocket): string {
  return dedicatedAddress(template, socket) + dedicatedPath(socket.name);
}
