import { isSymbol } from '../../../schemas/pill.ts';
import { formatPosition } from '../../../schemas/position.ts';
import { symbolErrors } from '../server/symbol-list.ts';
import type { Evaluator } from './evaluator.ts';
import type { LogCache } from './log-cache.ts';
import type { FoundPill, PillSearch } from './pill-search.ts';
import type { Reason } from './reasons.ts';
import { foundBody, missingBody, verdictBody } from './verdict-body.ts';
import type { VerifyQuery } from './verify-query.ts';

/** Answers queries of verify. The verdict reports an unavailable part; nothing is rejected. */
export function createVerifier(deps: {
  readonly evaluator: Evaluator;
  readonly search: PillSearch;
  readonly cache: Pick<LogCache, 'offsets'>;
  readonly epoch: string;
}): (query: VerifyQuery) => Promise<object> {
  const { evaluator, search, cache, epoch } = deps;
  const position = () => formatPosition(epoch, cache.offsets());

  const verifySymbol = async (symbol: string) =>
    verdictBody(await evaluator.evaluate(symbol), position());
  const verifyFound = async (found: FoundPill) =>
    foundBody(found, await evaluator.evaluate(found.pill.symbol, found.pill), position());
  const verifyPill = async (symbol: string, id: string) => {
    // Read before the search: the search covers everything up to here.
    const until = position();
    const { found, fault, searchedFrom } = await search.find(symbol, id);
    if (found[0] !== undefined) return verifyFound(found[0]);
    // While this process is disconnected from the log, newer pills may have the id.
    const faulty = evaluator.evaluateMissing(symbol, fault === undefined ? [] : [fault]);
    const isComplete = faulty.facts.faults.length === 0;
    const missing: Reason = { code: 'id_not_found', detail: 'not among pills up to position' };
    const evaluation = isComplete ? evaluator.evaluateMissing(symbol, [missing]) : faulty;
    return missingBody(id, evaluation, { isComplete, from: searchedFrom }, until);
  };
  const verifyId = async (id: string) => {
    const until = position();
    const { found, hasMore, fault } = await search.findAll(id);
    const data = await Promise.all(found.map(verifyFound));
    const reasons = [...evaluator.faults(), ...(fault === undefined ? [] : [fault])];
    return { data, complete: !hasMore && reasons.length === 0, reasons, position: until };
  };
  const verifySymbols = async (symbols: readonly string[]) => {
    const wellFormed = symbols.filter(isSymbol);
    const verdicts = await Promise.all(wellFormed.map(verifySymbol));
    const data = Object.fromEntries(wellFormed.map((symbol, at) => [symbol, verdicts[at]!]));
    return { data, errors: symbolErrors(symbols), position: position() };
  };

  return async (query) => {
    if (query.kind === 'symbol') return verifySymbol(query.symbol);
    if (query.kind === 'symbols') return verifySymbols(query.symbols);
    if (query.kind === 'pill') return verifyPill(query.symbol, query.id);
    return verifyId(query.id);
  };
}
