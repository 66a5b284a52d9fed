// Builds the programs and the page into dist. Every npm script builds first, and most find both up
// to date. Plain JavaScript, since nothing is compiled before.
import { buildPage } from './page.mjs';
import { buildPrograms } from './programs.mjs';

await buildPrograms();
await buildPage();
