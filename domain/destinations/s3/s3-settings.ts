import { type Static, Type } from 'typebox';

const STRICT = { additionalProperties: false } as const;

/** Lengths of record time that divide a day, so that no piece has pills of two days. */
const WINDOWS_S = [10, 60, 300, 900, 3_600] as const;

export const S3_PATTERNS = {
  // Amazon's rules of names, so that a name is no path and no ARN.
  bucket: '^[a-z0-9](?:[a-z0-9-]|\\.(?=[a-z0-9])){1,61}[a-z0-9]$',
  prefix: '^(?:[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,63}/){0,8}$',
} as const;

export const S3Settings = Type.Object(
  {
    endpoint: Type.String({
      minLength: 1,
      maxLength: 2_048,
      description:
        'https address of the S3 service without a path, at an address of the public internet, ' +
        'e.g. https://s3.ap-northeast-1.amazonaws.com',
    }),
    region: Type.String({
      pattern: '^[a-z0-9-]{1,40}$',
      description: 'Region that requests are signed for, e.g. ap-northeast-1',
    }),
    bucket: Type.String({
      pattern: S3_PATTERNS.bucket,
      description: '3 to 63 lower-case letters, digits, hyphens and single dots',
    }),
    prefix: Type.String({
      pattern: S3_PATTERNS.prefix,
      description:
        'Start of all object names: empty, or folders that end with a slash, e.g. market/pills/',
    }),
    addressing: Type.Enum(['path', 'host'], {
      description: 'Whether the bucket is in the path of requests, or in front of the host name',
    }),
    format: Type.Enum(['parquet', 'ndjson'], {
      description: 'Parquet with one row group and Snappy, or one JSON document a line',
    }),
    window_s: Type.Enum([...WINDOWS_S], {
      description: 'Seconds of record time that one object covers at most',
    }),
  },
  STRICT,
);
export type S3Settings = Static<typeof S3Settings>;

export const S3Secrets = Type.Object(
  {
    access_key_id: Type.String({
      pattern: '^[\\x21-\\x7e]{1,128}$',
      description: 'Access key id: 1 to 128 printable characters',
    }),
    secret_access_key: Type.String({
      pattern: '^[\\x21-\\x7e]{1,256}$',
      description: 'Secret access key: 1 to 256 printable characters',
    }),
  },
  STRICT,
);
export type S3Secrets = Static<typeof S3Secrets>;
