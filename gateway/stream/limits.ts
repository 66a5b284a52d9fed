import { GRANT_S } from '../../domain/access/gap-fill-grant.ts';
/** Every bound of the stream process, with its unit. */
export const LIMITS = {
  /** Sockets of one process. */
  connectionsMax: 10_000,
  /** An IPv6 address counts by its /64, here and below. */
  connectionsPerAddressMax: 2_000,
  /** Handshakes per second; above it HTTP 429. */
  opensPerSecondMax: 1_000,
  /** The part of these without a credential; the rest is left to those that bring one. */
  silentOpensPerSecondMax: 500,
  /** Handshakes from one address: as many at once as a tier may open, then fewer. */
  opensPerAddressMax: 1_000,
  opensPerSecondPerAddressMax: 200,
  /** Symbols named by one connection; `*` does not count. */
  symbolsPerConnectionMax: 1_000,
  /** Time from the handshake to the credential. */
  authTimeoutMs: 5_000,
  /**
   * Sockets that have sent no credential, and again as many whose credential is being checked; of one
   * address, a part of these. At the bound the address with the most gives way to others.
   */
  unauthenticatedMax: 1_000,
  unauthenticatedPerAddressMax: 250,
  /** Frames of one socket that arrive while its credential is checked. */
  pendingFrameBytesMax: 16_384,
  /** The same while a resume is prepared: 1,000 symbols, each in its own frame, are some 36 KiB. */
  heldFrameBytesMax: 65_536,
  frameInBytesMax: 4_096,
  /** A frame over the limit is read up to here, to be refused with an error; longer ones are cut. */
  frameReadBytesMax: 16_384,
  framesInPerSecond: 5,
  framesInBurst: 20,
  /** Invalid frames before the connection is closed; one is forgiven every 10 s. */
  faultsMax: 20,
  faultForgivenMs: 10_000,
  frameIdLengthMax: 64,
  filterStatesMax: 32,
  /**
   * Pills with effect that are kept in memory for resumes: some 32 MiB when full, and some 160 MiB
   * more if clients resume for all of them.
   */
  replayBufferPillsMax: 262_144,
  /** The same for a dedicated process, of which a machine runs many; the log has older pills. */
  dedicatedReplayBufferPillsMax: 65_536,
  /** Pills of one replay. */
  replayPillsMax: 100_000,
  /** Records read from the log for one replay, beyond those in memory: some 10 to 20 s. */
  replayRecordsMax: 1_000_000,
  /** Pills from the log that all replays hold: some 160 MiB, besides the replay buffer. */
  logReplayPillsMax: 262_144,
  dedicatedLogReplayPillsMax: 100_000,
  /** Connections whose replay waits, for the log or for this instance, at a time. */
  replaysWaitingMax: 4_000,
  /** The same for one account: as many as a tier may open, and a quarter of all. */
  replaysWaitingPerAccountMax: 1_000,
  /** How long to wait for this instance to reach a position ahead of it. */
  replayWaitMs: 5_000,
  /** Time limit of one reading of the log. */
  replayReadMs: 20_000,
  /** How long the start of the log is cached. */
  logStartCacheMs: 10_000,
  /** Announced in `welcome`: older positions may not be resumable. The log backs up the memory. */
  resumeMaxAgeS: 86_400,
  /** Interval of updates of the resume window, which may include positions older by this much. */
  resumeWindowRefreshMs: 60_000,
  /** How long the free fill of a gap is valid. */
  grantS: GRANT_S,
  /** Bytes in the queue of one connection. */
  queueBytesMax: 1_048_576,
  /**
   * Queued bytes of all connections, in our queues and inside uWS; a frame in several queues counts
   * for each. Above it the connections with the largest queues are closed with 4001 and their
   * position.
   */
  processQueueBytesMax: 268_435_456,
  /** The same for a dedicated process, of which a machine runs many. */
  dedicatedQueueBytesMax: 67_108_864,
  /**
   * Pills of the log that are published in one turn of the event loop, some 150 KB as JSON: a fetch
   * of MiBs, after a pause of the process or of the log, would overflow the queues of all readers.
   */
  burstPillsMax: 500,
  /** Least distance of two bursts: 100,000 pills/s, about what one process can judge. */
  burstDistanceMs: 5,
  /** Bytes that a symbol held back by `latest` mode counts as: its pill is shared by all. */
  heldSymbolBytes: 64,
  /** Bytes that a queued snapshot row counts as: a reference to a shared row. */
  heldRowBytes: 8,
  /** Frames are cut at this size; at most one of them is buffered inside uWS. */
  frameOutBytesMax: 65_536,
  /** The bound of uWS; never reached, since we stop at the first frame that uWS buffers. */
  uwsBufferBytesMax: 1_048_576,
  /** Snapshot frames per turn of the event loop, so that a large snapshot delays no other client. */
  snapshotFramesPerTurn: 2,
  heartbeatMs: 5_000,
  /** uWS pings before, and ends a socket that stays silent: 1006 after 24 to 28 s. */
  silentPeerS: 24,
  /** Quiet symbols are checked and reported in turns, so that pills are sent in between. */
  quietChecksPerTurn: 1_000,
  quietFramesPerTurn: 250,
  quietTurnMs: 10,
  /** Minimum interval of the summaries of quiet symbols for `*`. */
  quietSummaryMs: 5_000,
  /** Symbols that a summary names; the rest is counted. */
  quietSummarySymbolsMax: 20,
  /** An outage of the log is reported after this time; a rebalance is shorter. */
  logDownAfterMs: 2_000,
  /**
   * Time from SIGTERM to the close of the last socket. With `feedCloseMs` this leaves half a second
   * of the 4 s in which a stop must end, long before the process ends itself or the local launcher
   * kills it.
   */
  drainMs: 2_500,
  /** Time for the consumer to leave its group; a stop without leaving has no cost. */
  feedCloseMs: 1_000,
  reconnectJitterMs: 3_000,
} as const;

/** The bounds by name, of any value: tests set lower ones. */
export type Limits = { readonly [L in keyof typeof LIMITS]: number };
