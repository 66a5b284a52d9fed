import { isSymbol } from '../../../schemas/pill.ts';
import { formatPosition } from '../../../schemas/position.ts';
import { foundBody, missingBody, verdictBody } from './body.ts';
import type { Finder, Found } from './finder.ts';
import type { LogMemory } from './log-memory.ts';
import type { VerifyQuestion } from './question.ts';
import type { Reason } from './reasons.ts';
import type { Weigher } from './weigher.ts';

export interface AnswerOptions {
  readonly weigher: Weigher;
  readonly finder: Finder;
  readonly memory: Pick<LogMemory, 'offsets'>;
  readonly epoch: string;
}

/** Answers a question of verify. Never throws for a part that is away: the verdict tells it. */
export function createAnswers({ weigher, finder, memory, epoch }: AnswerOptions) {
  const position = () => formatPosition(epoch, memory.offsets());

  const ofSymbol = async (symbol: string) => {
    const weighed = await weigher.weigh(symbol);
    return verdictBody(weighed, position());
  };
  const ofFound = async (found: Found) =>
    foundBody(found, await weigher.weigh(found.pill.symbol, found.pill), position());
  const ofPill = async (symbol: string, id: string) => {
    // Before the search: all up to here was looked at.
    const until = position();
    const { found, fault, searchedFrom } = await finder.find(symbol, id);
    if (found[0] !== undefined) return ofFound(found[0]);
    const missing: Reason = { code: 'id_not_found', detail: 'not among pills up to position' };
    // While this process does not hear the log, the id may be in what it has not heard.
    const weighed = weigher.weighNothing(symbol, fault === undefined ? [] : [fault]);
    const isAll = weighed.facts.faults.length === 0;
    const told = isAll ? weigher.weighNothing(symbol, [missing]) : weighed;
    return missingBody(id, told, { isAll, from: searchedFrom }, until);
  };

  return async (question: VerifyQuestion): Promise<object> => {
    if (question.kind === 'symbol') return ofSymbol(question.symbol);
    if (question.kind === 'pill') return ofPill(question.symbol, question.id);
    if (question.kind === 'id') {
      const until = position();
      const { found, hasMore, fault } = await finder.findAll(question.id);
      const data = await Promise.all(found.map(ofFound));
      const reasons = [...weigher.faults(), ...(fault === undefined ? [] : [fault])];
      return { data, complete: !hasMore && reasons.length === 0, reasons, position: until };
    }
    const data: Record<string, object> = {};
    const errors: Record<string, object> = {};
    const wellFormed = question.symbols.filter(isSymbol);
    const verdicts = await Promise.all(wellFormed.map(ofSymbol));
    for (const [index, symbol] of wellFormed.entries()) data[symbol] = verdicts[index]!;
    for (const symbol of question.symbols) {
      if (isSymbol(symbol)) continue;
      const shown = symbol.slice(0, 64).toWellFormed();
      errors[shown] = { code: 'symbol_malformed', detail: 'Not a symbol.' };
    }
    return { data, errors, position: position() };
  };
}
