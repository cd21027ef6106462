-- Who caused an event: {"type", "id", "name"}; null for what payers, the chain or time caused.
alter table events add column actor json;

alter table api_keys
  -- What the store calls the key.
  add column label text,
  -- What the key may do; null means everything.
  add column scopes text[],
  -- The addresses and blocks it may be used from; empty means any.
  add column addresses text[] not null default '{}',
  -- To the hour, so that using a key is not a write per request.
  add column last_used_at timestamptz;
