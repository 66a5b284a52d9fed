/** Pills a second up to which a change is news to an eye. */
const CALM_TO_PER_S = 50;
/** And below which it is again: a rate that swings about one limit must not switch all the time. */
const CALM_FROM_PER_S = 35;

/** Whether changes are to be pointed out. @param wasCalm whether they were until now */
export function isCalm(wasCalm: boolean, perS: number): boolean {
  return perS <= (wasCalm ? CALM_TO_PER_S : CALM_FROM_PER_S);
}
