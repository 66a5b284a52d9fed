import dgram from 'node:dgram';
import dns from 'dns-packet';

/** Answer of the stub: addresses (those of the queried family), an error, or none at all. */
export type StubAnswer = readonly string[] | 'servfail' | 'nxdomain' | 'silence';

/** A name server on this machine with answers set by a test. */
export interface DnsStub {
  /** For WEBHOOK_DNS_SERVERS. */
  readonly server: string;
  /**
   * Sets the answers of a name, one per query (A and AAAA together count as one); the last answer
   * repeats.
   */
  set(name: string, ...answers: readonly StubAnswer[]): void;
  /** How often the IPv4 addresses of the name were queried. */
  queryCount(name: string): number;
  close(): Promise<void>;
}

/** Names without answers do not exist. */
export async function openDnsStub(): Promise<DnsStub> {
  const answers = new Map<string, readonly StubAnswer[]>();
  const counts = new Map<string, number>();
  const socket = dgram.createSocket('udp4');
  socket.on('message', (message, from) => {
    const query = dns.decode(message);
    const question = query.questions?.[0];
    if (question === undefined) return;
    const { name, type } = question;
    const count = counts.get(`${type} ${name}`) ?? 0;
    counts.set(`${type} ${name}`, count + 1);
    const set = answers.get(name.toLowerCase()) ?? ['nxdomain'];
    const answer = set[Math.min(count, set.length - 1)] ?? 'nxdomain';
    if (answer === 'silence') return;
    const rcode = answer === 'servfail' ? 2 : answer === 'nxdomain' ? 3 : 0;
    const family = type === 'AAAA' ? ':' : '.';
    const matching = Array.isArray(answer) ? answer.filter((data) => data.includes(family)) : [];
    const reply = dns.encode({
      type: 'response',
      id: query.id ?? 0,
      flags: dns.RECURSION_DESIRED | dns.RECURSION_AVAILABLE | rcode,
      questions: [question],
      answers: matching.map((data) => ({ type: type as 'A', name, ttl: 0, data })),
    });
    socket.send(reply, from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return {
    server: `127.0.0.1:${socket.address().port}`,
    set(name, ...all) {
      answers.set(name, all);
      for (const type of ['A', 'AAAA']) counts.delete(`${type} ${name}`);
    },
    queryCount: (name) => counts.get(`A ${name}`) ?? 0,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}
