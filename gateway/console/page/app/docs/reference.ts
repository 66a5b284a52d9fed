/** What the pages use of an OpenAPI document. */
export interface OpenApi {
  readonly servers: readonly { readonly url: string }[];
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
}

interface OpenApiOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly 'x-tier'?: string;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly servers?: readonly { readonly url: string }[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Contents };
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: Contents }>
  >;
}

type Contents = Readonly<Record<string, Content>>;
interface Content {
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly example?: unknown;
  readonly schema?: Readonly<Record<string, unknown>>;
}

export interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly server: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string | undefined;
  /** Lowest plan that includes it; undefined = every one, and none is needed. */
  readonly tier: string | undefined;
  /** Scope that a key needs; '' = any key; undefined = keys are refused. */
  readonly scope: string | undefined;
  /** Whether the console itself may call it for the signed-in user. */
  readonly takesSession: boolean;
  readonly parameters: readonly Parameter[];
  readonly body: string | undefined;
  readonly answers: readonly {
    readonly status: string;
    readonly description: string;
    readonly example: string | undefined;
  }[];
}

const METHODS: ReadonlySet<string> = new Set(['get', 'post', 'put', 'patch', 'delete']);

/** All operations of a document, in its order. */
export function operationsOf({ servers, paths }: OpenApi): readonly Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => METHODS.has(method))
      .map(([method, operation]) => operationOf(method, path, operation, servers[0]!.url)),
  );
}

function operationOf(
  method: string,
  path: string,
  of: OpenApiOperation,
  server: string,
): Operation {
  const { security = [], 'x-tier': tier, parameters = [], responses } = of;
  const key = security.find((one) => 'key' in one)?.key;
  return {
    id: of.operationId,
    method: method.toUpperCase(),
    path,
    server: of.servers?.[0]?.url ?? server,
    tag: of.tags?.[0] ?? 'other',
    summary: of.summary,
    description: of.description,
    tier: tier === 'none' ? undefined : tier,
    scope: key === undefined ? undefined : (key[0] ?? ''),
    takesSession: security.length === 0 || security.some((one) => 'session' in one),
    // Headers are part of every call: the key, or the session of the console.
    parameters: parameters.filter((one) => one.in !== 'header'),
    body: exampleOf(of.requestBody?.content),
    answers: Object.entries(responses).map(([status, { description, content }]) => ({
      ...{ status, description, example: exampleOf(content) },
    })),
  };
}

/** The first example of a body as text: JSON with two blanks, other text as it is. */
function exampleOf(contents: Contents | undefined): string | undefined {
  const [content] = Object.values(contents ?? {});
  const value = content?.example ?? Object.values(content?.examples ?? {})[0]?.value;
  if (value === undefined || typeof value === 'string') return value;
  return JSON.stringify(value, undefined, 2);
}

/**
 * The path of a call with the given values, and examples of what is required. A call without any
 * of them has the first optional parameter with an example; others may exclude each other.
 */
export function examplePath(
  { path, parameters }: Pick<Operation, 'path' | 'parameters'>,
  given: Readonly<Record<string, string>> = {},
): string {
  const wanted = parameters.filter(({ name, required }) => required === true || name in given);
  const [first] = parameters.filter(({ example }) => example !== undefined);
  const shown = wanted.length === 0 && first !== undefined ? [first] : wanted;
  const textOf = ({ name, example }: Parameter) =>
    given[name] ?? (example === undefined ? `<${name}>` : String(example));
  const query = new URLSearchParams();
  let filled = path;
  for (const parameter of shown) {
    const value = textOf(parameter);
    if (parameter.in === 'path')
      filled = filled.replace(
        `{${parameter.name}}`,
        encodeURIComponent(value).replaceAll("'", '%27'),
      );
    else if (parameter.in === 'query' && value !== '') query.append(parameter.name, value);
  }
  return query.size === 0 ? filled : `${filled}?${query}`;
}

/** The whole call for curl, TypeScript and Python, with the key in the environment. */
export function callsOf(
  operation: Operation,
  path: string,
): readonly (readonly [string, string])[] {
  const { method, server, body, scope } = operation;
  const url = `${server}${path}`;
  const hasKey = scope !== undefined;
  const compact = body === undefined ? undefined : compactJson(body);
  const curl = [
    `curl${method === 'GET' ? '' : ` -X ${method}`}`,
    ...(hasKey ? ['-H "X-API-Key: $PILLOLE_KEY"'] : []),
    ...(compact === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d '${compact.replaceAll("'", "'\\''")}'`]),
    `'${url}'`,
  ];
  const keyLine = (text: string) => (hasKey ? [text] : []);
  const typeLine = (text: string) => (compact === undefined ? [] : [text]);
  const typescript = [
    `const answer = await fetch('${url}', {`,
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    '  headers: {',
    ...keyLine("    'X-API-Key': process.env.PILLOLE_KEY!,"),
    ...typeLine("    'Content-Type': 'application/json',"),
    '  },',
    ...typeLine(`  body: JSON.stringify(${compact}),`),
    '});',
    'console.log(answer.status, await answer.text());',
  ];
  const python = [
    'import json, os, urllib.request',
    '',
    'request = urllib.request.Request(',
    `    "${url}",`,
    `    method="${method}",`,
    '    headers={',
    ...keyLine('        "X-API-Key": os.environ["PILLOLE_KEY"],'),
    ...typeLine('        "Content-Type": "application/json",'),
    '    },',
    ...typeLine(`    data=json.dumps(json.loads(r'''${compact}''')).encode(),`),
    ')',
    'with urllib.request.urlopen(request) as answer:',
    '    print(answer.status, answer.read().decode())',
  ];
  return [
    ['curl', curl.join(' \\\n  ')],
    ['TypeScript', typescript.join('\n')],
    ['Python', python.join('\n')],
  ];
}

function compactJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}
