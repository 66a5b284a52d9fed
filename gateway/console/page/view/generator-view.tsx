import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { PilloleError } from '../../../../sdk/browser.ts';
import { type GeneratorReport, readGeneratorReport } from '../feed/generator-reads.ts';
import { localTime } from '../market/platform-clock.ts';
import { formatAge } from './format.ts';
import { SecretForm } from './key-form.tsx';
import { OutcomeTables } from './outcome-tables.tsx';
import { type Read, useRead } from './use-read.ts';

/** The report is read again after ten times as long as it took, within these bounds. */
const AGAIN_MS = { min: 15_000, max: 300_000, timesTook: 10 };

const againMs = ({ tookMs }: GeneratorReport) =>
  Math.min(AGAIN_MS.max, Math.max(AGAIN_MS.min, AGAIN_MS.timesTook * tookMs));

/** For the owner of a generator: what became of the pills of the last 24 hours. */
export function GeneratorView(props: {
  /** The generator's; undefined: where ingest is open, or until it is asked for. */
  readonly token: string | undefined;
  readonly onToken: (token: string) => void;
  readonly nowMs: number;
  /** Stands for the tables until they are read. */
  readonly placeholder?: ComponentChildren;
}) {
  const { token, onToken, nowMs, placeholder = <p class="soft">Reading …</p> } = props;
  const [attempt, setAttempt] = useState(0);
  const report = useRead(
    `attempt ${attempt}`,
    (signal) => readGeneratorReport(token, signal),
    againMs,
    needsToken,
  );
  const { value, fault } = report;
  // The tables change with the report alone, not with each drawing of the page.
  const tables = useMemo(() => value && <OutcomeTables {...value} />, [value]);
  return (
    <>
      <p class="soft">
        What became of the pills of the last 24 hours. Counts are exact, and follow within seconds.
        {asOf(report, nowMs)}
      </p>
      {fault !== undefined && (
        <p class="bad" role="alert">
          {value !== undefined && 'The figures could not be refreshed. '}
          {isMalformed(fault, token) && 'The text is no generator token. '}
          {describeFault(fault)}
        </p>
      )}
      {fault !== undefined && needsToken(fault) && (
        <SecretForm
          label="Generator token"
          placeholder="gen_…"
          action="Show"
          onSecret={(secret) => {
            onToken(secret);
            setAttempt(attempt + 1);
          }}
        >
          Paste the token with which the generator sends. The token stays in the memory of this page
          and is gone after a reload.
        </SecretForm>
      )}
      {value === undefined && fault === undefined && placeholder}
      {tables}
    </>
  );
}

function asOf({ atMs }: Read<GeneratorReport>, nowMs: number): string {
  if (atMs === undefined) return '';
  const age = formatAge(Math.max(0, nowMs - atMs));
  return ` As of ${localTime(atMs)}, ${age === 'now' ? age : `${age} ago`}.`;
}

/** Whether only another token helps. */
function needsToken(fault: Error): boolean {
  return fault instanceof PilloleError && (fault.status === 401 || fault.status === 403);
}

/** The platform sees no credential in a text that has not the form of one. */
function isMalformed(fault: Error, token: string | undefined): boolean {
  const isMissing = fault instanceof PilloleError && fault.code === 'credential_missing';
  return token !== undefined && isMissing;
}

/** The problem in the platform's own words: its title, its detail, and what to do. */
function describeFault(fault: Error): string {
  const problem = fault instanceof PilloleError ? fault.problem : undefined;
  const request = problem?.request_id === undefined ? undefined : `Request ${problem.request_id}`;
  const parts = [problem?.title ?? fault.message, problem?.detail, problem?.remedy, request];
  const sentences = parts.filter((part) => typeof part === 'string');
  return sentences.map((part) => (/[.!?]$/.test(part) ? part : `${part}.`)).join(' ');
}
