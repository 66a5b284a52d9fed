import type { Static, TObject } from 'typebox';
import type { FieldCode } from '../../schemas/fault.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import type { EffectivePill } from '../order/judge.ts';
import type { Egress } from '../webhooks/send/egress.ts';
import type { UrlPolicy } from '../webhooks/send/url-policy.ts';

/**
 * A kind of system that pills are written to. One folder holds all of a type: the schemas of its
 * settings and credentials, from which routes and documents are made, its instructions and its
 * publisher. The catalogue lists it in one line.
 */
export interface DestinationType<S extends TObject = TObject, C extends TObject = TObject> {
  /** In paths of the API and in the database. */
  readonly name: string;
  readonly title: string;
  readonly settings: S;
  /** Stored encrypted, never shown again. */
  readonly secrets: C;
  readonly example: { readonly settings: Static<S>; readonly secrets: Static<C> };
  /** Markdown, for the owner of the receiving system: what to create there, and which rights we need. */
  readonly instructions: string;
  /** Settings that never change, because the names of what is written follow from them. */
  readonly fixed: readonly (keyof Static<S> & string)[];
  /** Settings that say who gets the credentials: a change must send the credentials again. */
  readonly receivers: readonly (keyof Static<S> & string)[];
  /** Faults that the schema does not cover. */
  faults(settings: Static<S>, policy: UrlPolicy): readonly SettingFault[];
  /** Seconds of record time that one piece covers at most; pieces never cross a multiple of it. */
  windowS(settings: Static<S>): number;
  open(of: PublisherOptions<Static<S>, Static<C>>): Publisher;
}

/** A type whose settings were checked by its schemas before. */
export interface AnyDestinationType extends Omit<DestinationType, 'faults' | 'windowS' | 'open'> {
  faults(settings: object, policy: UrlPolicy): readonly SettingFault[];
  windowS(settings: object): number;
  open(of: PublisherOptions<object, object>): Publisher;
}

export interface SettingFault {
  /** Name of the setting. */
  readonly setting: string;
  readonly code: FieldCode;
  readonly detail: string;
}

export interface PublisherOptions<S, C> {
  readonly destinationId: string;
  readonly settings: S;
  readonly secrets: C;
  /** Every connection leaves through it: names are resolved and vetted as for webhooks. */
  readonly egress: Egress;
}

/** Pills of one partition that are delivered as a whole. A repeat has the same pills and offsets. */
export interface Piece {
  readonly destinationId: string;
  readonly epoch: string;
  readonly partition: number;
  readonly firstOffset: number;
  /** The first offset after the piece. */
  readonly endOffset: number;
  /** Where the last piece with pills ended; undefined = there is none. */
  readonly previousEnd: number | undefined;
  /** When the log appended its first pill. */
  readonly appendedAt: Micros;
  /** At least one. */
  readonly pills: readonly EffectivePill[];
}

/** Writes to one destination. */
export interface Publisher {
  /**
   * Resolves once the destination holds the piece durably. A piece that was delivered before, wholly
   * or in part, is delivered again without a loss.
   * @throws DeliveryError, or the reason of the signal
   */
  publish(piece: Piece, signal: AbortSignal): Promise<{ readonly bytes: number }>;
  /** Writes something harmless, with the rights that pieces need. @throws DeliveryError */
  test(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** The receiving system failed, refused, or could not be reached. */
export class DeliveryError extends Error {
  override readonly name = 'DeliveryError';
  /** One word for programs. */
  readonly reason: string;
  /** What the receiving system answered; undefined = nothing. */
  readonly status: number | undefined;

  /** @param detail one sentence that says what to do, without text of the receiving system */
  constructor(reason: string, detail: string, status?: number) {
    super(detail);
    this.reason = reason;
    this.status = status;
  }
}

/** Hides the types of settings, which the schemas have checked. */
export function defineType<S extends TObject, C extends TObject>(
  type: DestinationType<S, C>,
): AnyDestinationType {
  return type as unknown as AnyDestinationType;
}
