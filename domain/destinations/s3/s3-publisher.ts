import { createHash } from 'node:crypto';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { formatCursor } from '../../../schemas/position.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { AttemptError } from '../../webhooks/send/attempt-error.ts';
import {
  DeliveryError,
  type Piece,
  type Publisher,
  type PublisherOptions,
} from '../destination-type.ts';
import { OBJECT_FORMATS } from './object-format.ts';
import type { S3Secrets, S3Settings } from './s3-settings.ts';
import { createVettedHandler } from './vetted-handler.ts';

/** One PUT: an object is far below S3's 5 GiB. */
const PUT_MS = 60_000;
const OFFSET_DIGITS = 16;

/**
 * Writes each piece as one object, and then its manifest. S3 shows an object whole or not at all, and
 * a repeat has the same names, so a kill at any moment leaves no part of an object and no second one.
 */
export function openS3Publisher(of: PublisherOptions<S3Settings, S3Secrets>): Publisher {
  const { settings, destinationId } = of;
  const format = OBJECT_FORMATS[settings.format];
  const client = openClient(of);

  const put = async (key: string, body: Buffer, contentType: string, signal: AbortSignal) => {
    const limit = AbortSignal.timeout(PUT_MS);
    const command = new PutObjectCommand({
      Bucket: settings.bucket,
      Key: `${settings.prefix}${key}`,
      Body: body,
      ContentType: contentType,
    });
    try {
      await client.send(command, { abortSignal: AbortSignal.any([signal, limit]) });
    } catch (error) {
      signal.throwIfAborted();
      throw limit.aborted ? tooLate() : deliveryError(error);
    }
  };
  const putJson = (key: string, value: object, signal: AbortSignal) =>
    put(key, Buffer.from(`${JSON.stringify(value, null, 2)}\n`), 'application/json', signal);

  return {
    async publish(piece, signal) {
      const names = namesOf(piece, format.extension);
      const bytes = format.encode(piece);
      await put(names.object, bytes, format.contentType, signal);
      const manifest = manifestOf(piece, settings, names.object, bytes);
      await putJson(names.manifest, manifest, signal);
      return { bytes: bytes.length };
    },
    test: (signal) =>
      putJson('pillole-test.json', { destination: destinationId, test: true }, signal),
    async close() {
      client.destroy();
    },
  };
}

/** @returns a client that reads neither files nor variables of this machine, and retries nothing */
function openClient({ settings, secrets, egress }: PublisherOptions<S3Settings, S3Secrets>) {
  return new S3Client({
    endpoint: settings.endpoint,
    region: settings.region,
    credentials: {
      accessKeyId: secrets.access_key_id,
      secretAccessKey: secrets.secret_access_key,
    },
    forcePathStyle: settings.addressing === 'path',
    requestHandler: createVettedHandler(egress),
    // The runner retries, and records each attempt.
    maxAttempts: 1,
    followRegionRedirects: false,
    useArnRegion: false,
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    disableMultiregionAccessPoints: true,
    disableS3ExpressSessionAuth: true,
    // Services other than Amazon's do not know the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    expectContinueHeader: false,
    defaultsMode: 'standard',
    retryMode: 'standard',
    userAgentAppId: 'pillole',
  });
}

/**
 * Offsets have leading zeros, so that names sort like offsets. Two destinations may share a bucket and
 * a prefix, so the destination is part of each name.
 */
function namesOf({ destinationId, epoch, ...piece }: Piece, extension: string) {
  const { partition, firstOffset, appendedAt } = piece;
  const log = `destination=${destinationId}/epoch=${epoch}`;
  const of = `partition=${String(partition).padStart(5, '0')}`;
  const first = String(firstOffset).padStart(OFFSET_DIGITS, '0');
  const day = formatTimestamp(appendedAt).slice(0, 10);
  return {
    object: `pills/${log}/date=${day}/${of}/${first}.${extension}`,
    manifest: `manifests/${log}/${of}/${first}.json`,
  };
}

function manifestOf(piece: Piece, settings: S3Settings, object: string, bytes: Buffer) {
  const { epoch, partition, pills } = piece;
  const cursorOf = ({ offset }: { readonly offset: number }) => formatCursor(partition, offset);
  return {
    version: 1,
    destination: piece.destinationId,
    epoch,
    partition,
    first_offset: piece.firstOffset,
    end_offset: piece.endOffset,
    previous_end_offset: piece.previousEnd ?? null,
    object: `${settings.prefix}${object}`,
    format: settings.format,
    pills: pills.length,
    first_cursor: cursorOf(pills[0]!),
    last_cursor: cursorOf(pills.at(-1)!),
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  };
}

function tooLate(): DeliveryError {
  const detail = `The S3 service did not answer within ${PUT_MS / 1_000} s. Check its load.`;
  return new DeliveryError('timeout', detail);
}

/** What to do about the answers that owners can mend. */
const REMEDIES: Readonly<Record<string, string>> = {
  NoSuchBucket: 'Create the bucket, or correct its name.',
  AccessDenied: 'Allow s3:PutObject on the bucket and prefix for this access key.',
  InvalidAccessKeyId: 'Send an access key that exists.',
  SignatureDoesNotMatch: 'Send the secret of this access key again.',
  PermanentRedirect: 'The bucket is elsewhere: use the endpoint of its region.',
  AuthorizationHeaderMalformed: 'Use the region of the bucket.',
  SlowDown: 'The service limits requests; they are repeated later.',
};

/**
 * The error of the SDK as a sentence of ours. The service's own message is left out, because it may
 * repeat the access key. @returns the error itself if the fault is ours: no answer is to blame
 */
function deliveryError(error: unknown): unknown {
  if (error instanceof AttemptError) {
    const isOurs = error.reason === 'egress_down';
    return isOurs ? error : new DeliveryError(error.reason, error.message);
  }
  const { name = '', $metadata, $response } = error as SdkError;
  const status = $metadata?.httpStatusCode ?? $response?.statusCode;
  if (status === undefined) return error;
  const code = /^[A-Za-z0-9]{1,64}$/.test(name) ? name : 'Unknown';
  const remedy = REMEDIES[code] ?? 'Check the settings and the log of the service.';
  const detail = `The S3 service answered ${status} (${code}). ${remedy}`;
  return new DeliveryError('refused', detail, status);
}

interface SdkError {
  readonly name?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly $response?: { readonly statusCode?: number };
}
