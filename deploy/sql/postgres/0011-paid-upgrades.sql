-- An upgrade is a payment; a downgrade takes effect at the end of the paid period.

ALTER TABLE subscriptions
  ADD COLUMN next_tier text CHECK (next_tier IN ('basic', 'pro', 'institutional'));
COMMENT ON COLUMN subscriptions.tier IS 'Tier that is paid for until period_end';
COMMENT ON COLUMN subscriptions.next_tier IS 'Lower tier from period_end on; null = the same';

ALTER TABLE checkouts ADD COLUMN upgrades text, ADD COLUMN amount_cents integer;
COMMENT ON COLUMN checkouts.upgrades IS 'provider_reference of the subscription that the payment upgrades; null = a new subscription';
COMMENT ON COLUMN checkouts.amount_cents IS 'Amount to pay, in US cents; null in rows older than this column';
COMMENT ON COLUMN checkouts.status IS 'open until the provider reports the outcome; paid; failed; void: a newer payment was begun, or the subscription to upgrade has changed';
COMMENT ON COLUMN billing_events.tier IS 'Tier that was paid for, for a checkout that of the checkout; null = unchanged';
