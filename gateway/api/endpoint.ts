import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import type { Static, TObject, TSchema } from 'typebox';
import type { ProblemCode } from '../http/problem-catalogue.ts';
import type { AccessRule } from './access-rule.ts';
import { readBody } from './body.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Absent on the pages of the reference alone. */
    access?: AccessRule;
    /** What the route itself may answer, besides what its rule and its parameters bring. */
    problems?: readonly ProblemCode[];
    /** Of a body, where it may be longer than usual. */
    bodyBytesMax?: number;
  }
}

/** One answer of a route that is no problem. */
export interface Answer {
  readonly description: string;
  /** Absent when the answer has no body. */
  readonly schema?: TSchema;
  readonly example?: unknown;
  /** By default `application/json`. */
  readonly type?: string;
  /** The same in another media type, by its name. */
  readonly others?: Readonly<
    Record<string, { readonly schema: TSchema; readonly example: unknown }>
  >;
}

export interface Endpoint<P extends TObject, Q extends TObject, B extends TObject> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
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
  /** The route checks its query itself, and says more about it than a schema can. */
  readonly checksQuery?: true;
  /** What it returns is sent as JSON with 200, unless it sent an answer itself. */
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
 * Makes a Fastify route of an endpoint. Everything that is told of it in the OpenAPI document is
 * what is checked here: parameters and body by the same schemas, access by the guard.
 */
export function endpoint<P extends TObject, Q extends TObject, B extends TObject>(
  of: Endpoint<P, Q, B>,
): RouteOptions {
  const passThrough = () => (value: unknown) => ({ value });
  return {
    method: of.method,
    url: of.url,
    config: {
      access: of.access,
      ...(of.problems === undefined ? {} : { problems: of.problems }),
      ...(of.bodyBytesMax === undefined ? {} : { bodyBytesMax: of.bodyBytesMax }),
    },
    schema: {
      tags: [of.tag],
      summary: of.summary,
      ...(of.description === undefined ? {} : { description: of.description }),
      ...(of.params === undefined ? {} : { params: of.params }),
      ...(of.query === undefined ? {} : { querystring: of.query }),
      ...(of.body === undefined ? {} : { body: withExample(of.body, of.bodyExample) }),
      response: Object.fromEntries(
        Object.entries(of.answers).map(([status, answer]) => [status, describeAnswer(answer)]),
      ),
    },
    ...(of.body === undefined ? {} : { preValidation: readBody }),
    ...(of.checksQuery === true ? { validatorCompiler: passThrough } : {}),
    handler: of.handle as RouteOptions['handler'],
  };
}

function withExample(schema: TSchema, example: unknown): TSchema {
  return example === undefined ? schema : { ...schema, examples: [example] };
}

function describeAnswer(answer: Answer) {
  const { description, schema, example, type = 'application/json', others } = answer;
  if (schema === undefined) return { description, type: 'null' };
  const content = example === undefined ? { schema } : { schema, example };
  return { description, content: { [type]: content, ...others } };
}
