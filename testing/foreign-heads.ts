/** Header lines of requests, and the problem code of a server that is open to this machine only. */
export const FOREIGN_HEADS: readonly (readonly [
  name: string,
  lines: readonly string[],
  code: string,
])[] = [
  ['another name', ['Host: example.com'], 'local_only'],
  ['another name with a port', ['Host: example.com:8080'], 'local_only'],
  ['a name that leads to 127.0.0.1', ['Host: 127.0.0.1.nip.io:8080'], 'local_only'],
  ['a rebound name', ['Host: 7f000001.c0a80001.rbndr.example'], 'local_only'],
  ['a name that begins with localhost', ['Host: localhost.example.com'], 'local_only'],
  ['another IPv4 address', ['Host: 192.168.0.1:8080'], 'local_only'],
  ['another IPv6 address', ['Host: [2001:db8::1]:8080'], 'local_only'],
  ['IPv6 without brackets', ['Host: ::1'], 'local_only'],
  ['an empty Host', ['Host:'], 'local_only'],
  ['user info', ['Host: localhost@example.com'], 'local_only'],
  ['a foreign page', ['Host: localhost', 'Origin: https://example.com'], 'local_only'],
  ['an opaque page', ['Host: localhost', 'Origin: null'], 'local_only'],
  [
    'a rebound page',
    ['Host: rebound.example:8080', 'Origin: http://rebound.example:8080'],
    'local_only',
  ],
  [
    'a page of a name like localhost',
    ['Host: localhost', 'Origin: http://localhost.example.com'],
    'local_only',
  ],
  ['Forwarded', ['Host: localhost', 'Forwarded: for=192.0.2.1'], 'proxy_refused'],
  ['X-Forwarded-For', ['Host: localhost', 'X-Forwarded-For: 192.0.2.1'], 'proxy_refused'],
  ['X-Forwarded-For of this machine', ['Host: [::1]', 'x-forwarded-for: ::1'], 'proxy_refused'],
  ['an empty X-Forwarded-For', ['Host: localhost', 'X-Forwarded-For:'], 'proxy_refused'],
  ['X-Forwarded-Proto', ['Host: localhost', 'X-Forwarded-Proto: https'], 'proxy_refused'],
  ['X-Forwarded-Host', ['Host: localhost', 'X-Forwarded-Host: example.com'], 'proxy_refused'],
  ['X-Real-IP', ['Host: localhost', 'X-Real-IP: 192.0.2.1'], 'proxy_refused'],
  ['Via', ['Host: localhost', 'Via: 1.1 proxy'], 'proxy_refused'],
  [
    'a proxy that keeps the name',
    ['Host: example.com', 'X-Forwarded-For: 192.0.2.1'],
    'proxy_refused',
  ],
];

/** Header lines of requests from this machine. */
export const LOCAL_HEADS: readonly (readonly [name: string, lines: readonly string[]])[] = [
  ['localhost', ['Host: localhost']],
  ['localhost with a port', ['Host: LOCALHOST:8080']],
  ['another port, as through a tunnel', ['Host: localhost:9999']],
  ['an IPv4 address', ['Host: 127.0.0.1:8081']],
  ['an IPv6 address', ['Host: [::1]:8081']],
  ['a long IPv6 address', ['Host: [0:0:0:0:0:0:0:1]']],
  ['an address typed into a browser', ['Host: localhost', 'Sec-Fetch-Site: none']],
];
