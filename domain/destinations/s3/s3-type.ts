import { checkUrl, type UrlPolicy } from '../../webhooks/send/url-policy.ts';
import { defineType, type SettingFault } from '../destination-type.ts';
import { openS3Publisher } from './s3-publisher.ts';
import { S3Secrets, S3Settings } from './s3-settings.ts';

const INSTRUCTIONS = `
1. Create a bucket, and an access key that may \`s3:PutObject\` on it (below the prefix, if you set one). No other right is used.
2. Create the destination, and send a test: it writes \`pillole-test.json\`.

Objects are \`pills/destination=…/epoch=…/date=…/partition=…/<first offset>.parquet\` (or \`.ndjson\`), below the prefix. The date is that of the log (UTC). After each object, \`manifests/destination=…/epoch=…/partition=…/<first offset>.json\` is written: it names the object with its size, SHA-256, number of pills, and the offsets that it covers.

**At least once.** An object is whole or absent. After an interruption it is written again under the same name, with the same pills. Read the objects that manifests name: within a partition, each manifest's \`previous_end_offset\` is the \`end_offset\` of the one before, so a missing object shows. Versioning of the bucket keeps repeats.
`.trim();

/** An S3-compatible bucket, with Parquet or NDJSON. */
export const s3 = defineType({
  name: 's3',
  title: 'S3-compatible bucket',
  settings: S3Settings,
  secrets: S3Secrets,
  example: {
    settings: {
      endpoint: 'https://s3.ap-northeast-1.amazonaws.com',
      region: 'ap-northeast-1',
      bucket: 'example-pills',
      prefix: 'market/',
      addressing: 'path',
      format: 'parquet',
      window_s: 60,
    },
    secrets: { access_key_id: '<yours>', secret_access_key: '<yours>' },
  },
  instructions: INSTRUCTIONS,
  fixed: ['format', 'window_s'],
  receivers: ['endpoint'],
  faults: ({ endpoint, bucket, addressing }, policy) =>
    endpointFaults(endpoint, bucket, addressing, policy),
  windowS: ({ window_s: windowS }) => windowS,
  open: openS3Publisher,
});

function endpointFaults(
  endpoint: string,
  bucket: string,
  addressing: 'path' | 'host',
  policy: UrlPolicy,
): SettingFault[] {
  const checked = checkUrl(endpoint, policy);
  if (!checked.ok) return [{ setting: 'endpoint', ...checked.fault }];
  const { pathname, search, hostname, protocol } = checked.url;
  if (pathname !== '/' || search !== '') {
    const detail = 'Leave out the path and query: the bucket and the prefix are settings.';
    return [{ setting: 'endpoint', code: 'url_invalid', detail }];
  }
  if (addressing === 'path') return [];
  // Certificates of a service cover one label in front of its name.
  if (bucket.includes('.') && protocol === 'https:') {
    const detail = 'A bucket with a dot in its name needs the addressing path.';
    return [{ setting: 'addressing', code: 'malformed', detail }];
  }
  const whole = checkUrl(`${protocol}//${bucket}.${hostname}/`, policy);
  return whole.ok ? [] : [{ setting: 'bucket', ...whole.fault }];
}
