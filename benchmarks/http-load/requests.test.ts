import { describe, expect, test } from 'vitest';
import { createRequests } from './requests.ts';

const write = { kind: 'write', symbols: ['A.T', 'B.T'], run: 'r' } as const;

function bodyOf(request: Buffer | string): string {
  const [head, body] = String(request).split('\r\n\r\n') as [string, string];
  expect(head).toContain(`content-length: ${Buffer.byteLength(body)}`);
  return body;
}

describe('the requests of the load client', () => {
  test('every pill has its own id, and the symbols take turns', () => {
    const requests = createRequests({ ...write, pills: 1 });
    const pills = [1, 2, 3].map(() => JSON.parse(bodyOf(requests.next())));
    expect(pills.map(({ id, symbol }) => [id, symbol])).toEqual([
      ['r-1', 'A.T'],
      ['r-2', 'B.T'],
      ['r-3', 'A.T'],
    ]);
  });

  test('a batch holds the given number of pills, and succeeds when every row is stored', () => {
    const requests = createRequests({ ...write, pills: 3 });
    expect(JSON.parse(bodyOf(requests.next()))).toHaveLength(3);
    expect(JSON.parse(bodyOf(requests.next()))[0].id).toBe('r-4');
    const success = (body: string) => requests.isSuccess(Buffer.from(body));
    expect(success('{"status":"ok","ok":3,"replayed":0}')).toBe(true);
    expect(success('{"status":"ok","ok":2,"replayed":1}')).toBe(false);
    expect(success('{"status":"partial","ok":2,"replayed":0}')).toBe(false);
  });

  test('reads take the symbols in turn, with a key where one is given', () => {
    const requests = createRequests({ kind: 'read', symbols: ['A.T'], key: 'k' });
    expect(String(requests.next())).toContain('GET /api/pills/latest?symbol=A.T HTTP/1.1');
    expect(String(requests.next())).toContain('x-api-key: k');
  });
});
