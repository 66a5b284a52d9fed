/** `npm run test:long` runs the kill and chaos tests in their long form. */
export const isLongRun: boolean = process.env.PILLOLE_TEST_LONG === '1';
