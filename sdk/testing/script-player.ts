import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { ScriptedConnection, ScriptedServer } from './scripted-server.ts';

/** What a server does on one connection, in order. */
type Step =
  /** Waits for a client frame of the op, with these members. */
  | { readonly expect: string; readonly with?: Readonly<Record<string, unknown>> }
  | { readonly send: Readonly<Record<string, unknown>> }
  | { readonly close: number }
  /** Breaks the socket without a closing handshake. */
  | { readonly cut: true };

/** A behaviour of clients as data: what a server does, and what any client must make of it. */
export interface Script {
  readonly name: string;
  /** The rule, as BEHAVIOUR.md has it. */
  readonly rule: string;
  readonly options: {
    readonly symbols: string | readonly string[];
    readonly mode?: 'all' | 'latest';
    readonly resume?: string;
    readonly filter?: Readonly<Record<string, unknown>>;
    readonly backfill?: boolean;
    readonly refused_symbols?: 'deliver';
  };
  /** Answers to requests whose path begins so; others get 404. */
  readonly http?: readonly {
    readonly path: string;
    readonly status?: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body: unknown;
  }[];
  readonly connections: readonly (readonly Step[])[];
  /** Members that the items must have, in order. */
  readonly items: readonly Readonly<Record<string, unknown>>[];
  /** The error that ends the stream; absent: the client leaves after the items. */
  readonly error?: string;
  /** Position of the stream after the items. */
  readonly position?: string;
}

const FOLDER = path.join(import.meta.dirname, 'scripts');

/** All scripts, by the names of their files. */
export function readScripts(): readonly Script[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8')) as Script);
}

/** Plays the server's part. @throws if a client frame lacks a member that the script names */
export async function playScript(server: ScriptedServer, script: Script): Promise<void> {
  server.answer((url) => {
    const wanted = `${url.pathname}${url.search}`;
    const found = script.http?.find(({ path: start }) => wanted.startsWith(start));
    if (found !== undefined) return found;
    const body = { type: '/problems/x', title: 'No such address', status: 404, code: 'not_found' };
    return { status: 404, body };
  });
  for (const steps of script.connections) {
    const connection = await server.connection();
    for (const step of steps) await playStep(connection, step);
  }
}

async function playStep(connection: ScriptedConnection, step: Step): Promise<void> {
  if ('expect' in step) {
    const frame: object = await connection.next(step.expect);
    for (const [name, value] of Object.entries(step.with ?? {})) {
      const given: unknown = frame[name as keyof typeof frame];
      if (JSON.stringify(given) === JSON.stringify(value)) continue;
      throw new Error(
        `${step.expect}.${name} is ${JSON.stringify(given)}, not ${JSON.stringify(value)}.`,
      );
    }
  } else if ('send' in step) connection.send(step.send);
  else if ('close' in step) connection.close(step.close);
  else connection.cut();
}
