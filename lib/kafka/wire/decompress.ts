import zlib from 'node:zlib';

/** Bytes of one batch after decompression; the broker accepts batches of 1 MiB. */
const DECOMPRESSED_BYTES_MAX = 64 * 1024 * 1024;
const CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'];

/** Since Node 22.15; undefined before. */
const { zstdDecompressSync } = zlib as unknown as {
  readonly zstdDecompressSync?: typeof zlib.gunzipSync;
};

/**
 * Decompresses the records of a batch. The topics of this project have `compression.type`
 * `uncompressed`: the broker stores batches uncompressed, whatever a producer sends. Other settings
 * work for what Node itself decompresses: gzip, and zstd since Node 22.15.
 * @param codec the lowest bits of a batch's attributes
 * @throws RangeError for other codecs, with advice, and for more than 64 MiB
 */
export function decompress(codec: number, bytes: Buffer): Buffer {
  const options = { maxOutputLength: DECOMPRESSED_BYTES_MAX };
  if (codec === 0) return bytes;
  if (codec === 1) return zlib.gunzipSync(bytes, options);
  if (codec === 4 && zstdDecompressSync !== undefined) return zstdDecompressSync(bytes, options);
  const name = CODECS[codec] ?? `codec ${codec}`;
  throw new RangeError(
    `its compression is ${name}; set the topic's compression.type to uncompressed, so that the ` +
      'broker decompresses what producers send.',
  );
}
