/** The keywords of JSON Schema that the routes use. */
export interface AnySchema {
  readonly type?: string;
  readonly description?: string;
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly uniqueItems?: boolean;
  readonly properties?: Readonly<Record<string, AnySchema>>;
  readonly additionalProperties?: AnySchema | boolean;
  readonly patternProperties?: Readonly<Record<string, AnySchema>>;
  readonly items?: AnySchema;
  readonly anyOf?: readonly AnySchema[];
}

/** The schema and the value at a path of an input, e.g. `/symbols/3`. */
export function partOf(schema: AnySchema, value: unknown, path: string) {
  let part = schema;
  let at = value;
  for (const name of path.split('/').slice(1)) {
    const whole = withoutNull(part);
    const [others] = Object.values(whole.patternProperties ?? {});
    part = whole.properties?.[name] ?? whole.items ?? others ?? {};
    at = (at as Readonly<Record<string, unknown>> | null | undefined)?.[name];
  }
  return { schema: part, value: at };
}

/** The schema of a value that may also be null. */
export function withoutNull(schema: AnySchema): AnySchema {
  const parts = schema.anyOf?.filter(({ type }) => type !== 'null') ?? [];
  return parts.length === 1
    ? ({ description: schema.description, ...parts[0] } as AnySchema)
    : schema;
}

/** The rule of a schema in words: `must be a whole number from 1 to 500`. */
export function ruleOf(schema: AnySchema): string {
  const value = withoutNull(schema);
  return `${ruleOfValue(value)}${value === schema ? '' : ', or null'}`;
}

function ruleOfValue(schema: AnySchema): string {
  const { type, description, pattern, minLength, maxLength, minItems, maxItems } = schema;
  const choices = schema.enum ?? schema.anyOf?.flatMap((one) => one.const ?? []) ?? [];
  if (choices.length > 0)
    return `must be ${choices.length > 1 ? 'one of ' : ''}${choices.join(', ')}`;
  if (schema.const !== undefined) return `must be ${schema.const}`;
  if (type === 'integer') return `must be a whole number${rangeOf(schema)}`;
  if (type === 'number') return `must be a number${rangeOf(schema)}`;
  if (type === 'boolean') return 'must be true or false';
  if (type === 'array') {
    const unique = schema.uniqueItems === true ? ', each once' : '';
    return `must be a list of ${between(minItems ?? 0, maxItems)} entries${unique}`;
  }
  if (type === 'object') {
    const { maxProperties } = schema;
    if (maxProperties !== undefined) return `must be an object of at most ${maxProperties} members`;
    return `must be an object with ${Object.keys(schema.properties ?? {}).join(', ')}`;
  }
  if (pattern !== undefined && description !== undefined)
    return `is malformed. Expected: ${description}`;
  if (type !== 'string' || (minLength === undefined && maxLength === undefined))
    return 'must be text';
  return `must have ${between(minLength ?? 0, maxLength)} characters`;
}

function rangeOf({ minimum, maximum, exclusiveMinimum }: AnySchema): string {
  if (exclusiveMinimum !== undefined) {
    return ` above ${exclusiveMinimum}${maximum === undefined ? '' : `, at most ${maximum}`}`;
  }
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return ` of at least ${minimum}`;
  return maximum === undefined ? '' : ` of at most ${maximum}`;
}

function between(min: number, max: number | undefined): string {
  if (max === undefined) return `at least ${min}`;
  if (min === max) return `${min}`;
  return min === 0 ? `at most ${max}` : `${min} to ${max}`;
}
