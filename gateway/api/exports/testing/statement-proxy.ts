import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { request } from 'undici';

/** What becomes of a statement: it may be changed, wait, and lose the end of its answer. */
export interface Treatment {
  readonly sql?: string;
  readonly after?: Promise<unknown>;
  readonly isCut?: boolean;
}

/** A proxy between a process and ClickHouse that treats statements as a test wants. */
export interface StatementProxy {
  readonly url: string;
  /** Undefined: the statement passes unchanged. */
  treat: (sql: string) => Treatment | undefined;
  close(): void;
}

const HOP_BY_HOP = ['connection', 'content-length', 'host', 'keep-alive', 'transfer-encoding'];

export async function openStatementProxy(engineUrl: string): Promise<StatementProxy> {
  const server = http.createServer(async (incoming, outgoing) => {
    try {
      const sql = (await buffer(incoming)).toString();
      const { after, isCut = false, sql: changed = sql } = proxy.treat(sql) ?? {};
      await after;
      const answer = await request(new URL(incoming.url!, new URL(engineUrl).origin), {
        method: incoming.method as 'POST',
        headers: withoutHopByHop(incoming.headers),
        ...(incoming.method === 'GET' ? {} : { body: changed }),
      });
      const body = await buffer(answer.body);
      outgoing.writeHead(answer.statusCode, withoutHopByHop(answer.headers));
      if (!isCut) return void outgoing.end(body);
      outgoing.write(body.subarray(0, body.length / 2), () => outgoing.destroy());
    } catch {
      outgoing.destroy(); // the engine or the process has gone
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(engineUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  const proxy: StatementProxy = {
    url: url.href,
    treat: () => undefined,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  return proxy;
}

function withoutHopByHop(headers: http.IncomingHttpHeaders): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(
    ([name, value]) => value !== undefined && !HOP_BY_HOP.includes(name),
  );
  return Object.fromEntries(kept) as Record<string, string | string[]>;
}
