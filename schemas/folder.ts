import { existsSync } from 'node:fs';

// Compiled files are in dist/schemas, the .avsc files beside the sources.
const beside = new URL('./', import.meta.url);
const fromDist = new URL('../../schemas/', import.meta.url);

/** Folder of the .avsc files and fixtures, as a file URL with a trailing slash. */
export const schemaFolder = existsSync(new URL('pill.avsc', beside)) ? beside : fromDist;
