import dgram from 'node:dgram';
import dns from 'dns-packet';

/** What the stub tells: addresses (those of the asked family), an error, or nothing at all. */
export type StubAnswer = readonly string[] | 'servfail' | 'nxdomain' | 'silence';

/** A name server on this machine that answers as a test says. */
export interface DnsStub {
  /** For WEBHOOK_DNS_SERVERS. */
  readonly server: string;
  /**
   * Sets the answers of a name, one for each time it is asked (A and AAAA together are one time);
   * the last one stays.
   */
  set(name: string, ...answers: readonly StubAnswer[]): void;
  /** How often the name was asked for IPv4. */
  asked(name: string): number;
  close(): Promise<void>;
}

/** Answers of unset names: there is no such name. */
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
    const told = Array.isArray(answer) ? answer.filter((data) => data.includes(family)) : [];
    const reply = dns.encode({
      type: 'response',
      id: query.id ?? 0,
      flags: dns.RECURSION_DESIRED | dns.RECURSION_AVAILABLE | rcode,
      questions: [question],
      answers: told.map((data) => ({ type: type as 'A', name, ttl: 0, data })),
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
    asked: (name) => counts.get(`A ${name}`) ?? 0,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}
