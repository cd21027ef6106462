-- Account nonces of our settlers that a transaction which is not ours has used: the key is used elsewhere too. Such a
-- settler is stopped until an operator decides about it.
create table foreign_nonces (
  network text collate "C" not null,
  settler text collate "C" not null,
  nonce bigint not null check (nonce >= 0),
  found_at timestamptz not null,
  primary key (network, settler, nonce)
);
alter table settlers add column stopped_at timestamptz;
