/** Every bound of the stream process, with its unit. */
export const LIMITS = {
  /** Sockets that one process holds. */
  connectionsMax: 10_000,
  connectionsPerAddressMax: 2_000,
  /** Handshakes a second; above it HTTP 429. */
  opensPerSecondMax: 1_000,
  /** Symbols named by one connection; `*` counts apart. */
  symbolsPerConnectionMax: 1_000,
  /** From the handshake to the credential. */
  authTimeoutMs: 5_000,
  /** Sockets whose credential is waited for or looked up; over it they are told to come back. */
  unauthenticatedMax: 1_000,
  /** Of them from one address, so that one cannot keep all others out. */
  unauthenticatedPerAddressMax: 250,
  /** Frames of one socket that arrive while its credential is looked up. */
  keptFrameBytesMax: 16_384,
  /** The same while a resume is prepared: 1,000 symbols, each named once, are some 36 KiB. */
  heldFrameBytesMax: 65_536,
  frameInBytesMax: 4_096,
  /** A frame over the limit is read up to here, to be refused with a word; longer ones are cut. */
  frameReadBytesMax: 16_384,
  framesInPerSecond: 5,
  framesInBurst: 20,
  /** Faulty frames before the connection is closed; one is forgiven every 10 s. */
  faultsMax: 20,
  faultForgivenMs: 10_000,
  frameIdLengthMax: 64,
  filterStatesMax: 32,
  /** Pills with effect that are kept for those who come back: some 160 MiB when full. */
  backlogPillsMax: 262_144,
  /** The same for a dedicated process, of which a machine runs many; older ones the log has. */
  dedicatedBacklogPillsMax: 65_536,
  /** Pills of one replay. */
  replayPillsMax: 100_000,
  /** Records that the log is read for one replay beyond what memory holds: some 10 to 20 s. */
  replayRecordsMax: 1_000_000,
  /** Pills read from the log that replays under way hold: some 160 MiB, beside the backlog's. */
  logReplayPillsMax: 262_144,
  dedicatedLogReplayPillsMax: 100_000,
  /** Connections whose replay waits, for the log or for this instance, at a time. */
  replaysWaitingMax: 4_000,
  /** Of them of one account: as many as a tier lets connect, and a quarter of all. */
  replaysWaitingPerAccountMax: 1_000,
  /** How long a position that is ahead of this instance is waited for. */
  replayWaitMs: 5_000,
  /** How long the log may be read for those who wait. */
  replayReadMs: 20_000,
  /** How long it is known where the log begins. */
  logBeginsForMs: 10_000,
  /** What `welcome` tells: older positions are not promised. The log holds what memory forgot. */
  resumeMaxAgeS: 86_400,
  /** How long it is known which positions are so young: they may be older by so much. */
  promisedForMs: 60_000,
  /** How long a free fill of a gap may be asked for. */
  grantS: 86_400,
  /** Frames that wait in our own queue of one connection. */
  queueBytesMax: 1_048_576,
  /**
   * What waits over all connections, in our queues and inside uWS; a frame that several wait for
   * counts for each. Above it the largest queues go, with 4001 and their position.
   */
  processQueueBytesMax: 268_435_456,
  /** The same for a dedicated process, of which a machine runs many. */
  dedicatedQueueBytesMax: 67_108_864,
  /** What a symbol that `latest` mode holds back is counted as: its bytes are shared by all. */
  heldSymbolBytes: 64,
  /** What a snapshot row that waits is counted as: a reference, the row is shared. */
  heldRowBytes: 8,
  /** Frames are cut at this size; one of them is all that waits inside uWS. */
  frameOutBytesMax: 65_536,
  /** uWS's own bound; never reached, since we stop at the first frame it buffers. */
  uwsBufferBytesMax: 1_048_576,
  /** Snapshot frames sent in one turn of the event loop, so that a large one delays nobody. */
  snapshotFramesPerTurn: 2,
  heartbeatMs: 5_000,
  /** uWS pings before, and ends a socket that stays silent: 1006 after 24 to 28 s. */
  silentPeerS: 24,
  /** Who may have fallen silent is judged in turns, and told of in turns: pills go between. */
  quietChecksPerTurn: 1_000,
  quietFramesPerTurn: 250,
  quietTurnMs: 10,
  /** Those who want `*` are told of quiet symbols in sum, not more often. */
  quietSummaryMs: 5_000,
  /** A connection to the log that is gone this long is told; a rebalance is shorter. */
  logDownAfterMs: 2_000,
  /**
   * From SIGTERM to the last socket's close. With `feedCloseMs` it leaves half a second of the 4 s
   * in which a stop is done, long before the process ends itself or the local launcher kills it.
   */
  drainMs: 2_500,
  /** For the consumer to leave its group; one that is left behind costs nobody anything. */
  feedCloseMs: 1_000,
  reconnectJitterMs: 3_000,
} as const;
