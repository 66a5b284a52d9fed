import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

/** Answers one request. An exception, or a rejection, ends this request alone. */
export type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
) => Promise<void> | void;

/**
 * Creates a server of node:http in which no request ends the process: a request target that is no
 * URL is answered with 400, and an exception of the handler with 500, or with the end of the
 * connection if the answer has begun.
 * @param onError gets the exceptions of the handler
 */
export function createGuardedServer(handle: Handler, onError: (error: unknown) => void): Server {
  return createServer(async (request, response) => {
    try {
      const url = parseTarget(request.url ?? '');
      if (url === undefined) endWith(response, 400, 'The request target is not a path.');
      else await handle(request, response, url);
    } catch (error) {
      onError(error);
      endWith(response, 500, 'The request failed.');
    }
  });
}

/**
 * The target of a request (RFC 9112 section 3.2) as a URL: a path, also one that begins with `//`, or
 * a whole URL; undefined for anything else.
 */
export function parseTarget(target: string): URL | undefined {
  const text = target.startsWith('/') ? `http://localhost${target}` : target;
  return URL.canParse(text) ? new URL(text) : undefined;
}

function endWith(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  // The body of the request may be unread, so the connection cannot carry another one.
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  });
  response.end(text);
}
