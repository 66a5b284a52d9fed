import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import type { Static, TObject, TSchema } from 'typebox';
import type { ProblemCode } from '../../http/problem-catalogue.ts';
import type { AccessRule } from './access-rule.ts';
import { exampleOf } from './example.ts';
import { readBody } from './json-body.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Absent only on the pages of the reference. */
    access?: AccessRule;
    /** Problems of the route itself, besides the problems of its rule and its parameters. */
    problems?: readonly ProblemCode[] | undefined;
    /** Limit of the body, if it differs from `BODY_BYTES_MAX`. */
    bodyBytesMax?: number | undefined;
  }
}

/** One successful answer of a route. */
interface Answer {
  readonly description: string;
  /** Absent if the answer has no body. */
  readonly schema?: TSchema;
  /** By default that of the schema. */
  readonly example?: unknown;
  /** By default `application/json`. */
  readonly type?: string;
  /** The same answer in other media types, by name. */
  readonly others?: Readonly<
    Record<string, { readonly schema: TSchema; readonly example: unknown }>
  >;
}

export interface RouteDefinition<P extends TObject, Q extends TObject, B extends TObject> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly access: AccessRule;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly bodyExample?: Static<B>;
  /** By default `BODY_BYTES_MAX`. */
  readonly bodyBytesMax?: number;
  /** By status. */
  readonly answers: Readonly<Record<number, Answer>>;
  readonly problems?: readonly ProblemCode[];
  /** The returned value is sent as JSON with 200, unless the handler has sent an answer. */
  readonly handle: (
    request: FastifyRequest & {
      readonly params: Static<P>;
      readonly query: Static<Q>;
      readonly body: Static<B>;
    },
    reply: FastifyReply,
  ) => unknown;
}

/**
 * Makes a Fastify route from an endpoint. The OpenAPI document shows exactly what is checked here:
 * parameters and body by the same schemas, access by the guard.
 */
export function defineRoute<P extends TObject, Q extends TObject, B extends TObject>(
  of: RouteDefinition<P, Q, B>,
): RouteOptions {
  const { method, url, access, problems, bodyBytesMax, body } = of;
  const response = Object.entries(of.answers).map(([status, one]) => [status, describeAnswer(one)]);
  return {
    method,
    url,
    config: { access, problems, bodyBytesMax },
    schema: {
      tags: [of.tag],
      summary: of.summary,
      ...(of.description !== undefined && { description: of.description }),
      ...(of.params && { params: of.params }),
      ...(of.query && { querystring: of.query }),
      ...(body && { body: withExample(body, of.bodyExample) }),
      response: Object.fromEntries(response),
    },
    ...(body && { preValidation: readBody }),
    handler: of.handle as RouteOptions['handler'],
  };
}

function withExample(schema: TSchema, example: unknown): TSchema {
  return example === undefined ? schema : { ...schema, examples: [example] };
}

function describeAnswer(answer: Answer) {
  const { description, schema, type = 'application/json', others } = answer;
  if (schema === undefined) return { description, type: 'null' };
  const example = answer.example ?? exampleOf(schema);
  return { description, content: { [type]: { schema, example }, ...others } };
}
