/** A row of GET /api/support. */
export interface Ticket {
  readonly id: string;
  readonly subject: string;
  readonly state: 'open' | 'answered' | 'closed';
  readonly created_at: string;
}

export interface TicketPage {
  readonly data: readonly Ticket[];
  readonly next: string | null;
}

export interface TicketWithMessages extends Ticket {
  readonly messages: readonly {
    readonly author: 'customer' | 'support';
    readonly message: string;
    readonly created_at: string;
  }[];
}

export const STATES: Readonly<Record<Ticket['state'], string>> = {
  open: 'Waits for our answer',
  answered: 'Answered',
  closed: 'Closed',
};
