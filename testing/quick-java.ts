/**
 * JAVA_TOOL_OPTIONS of the engines in tests: an engine that runs for minutes does not recover the
 * cost of the second compiler (7 s of CPU time at each start of a stack).
 */
export const QUICK_JAVA = '-XX:TieredStopAtLevel=1';
