-- What a member is mailed about the payments of this store; null: one mail a day to owners, nothing to others.
alter table memberships add column payment_mails text check (payment_mails in ('every', 'daily', 'none')),
  -- It is in each of these mails. Whoever has it can stop them, and nothing else.
  add column stop_token uuid not null default gen_random_uuid();
create unique index memberships_by_stop_token on memberships (stop_token);

-- How far a member was mailed about the payments of a store, so that nothing is told twice.
create table payment_mail_cursors (
  store_id text collate "C" not null,
  member_id text collate "C" not null,
  -- Events up to this one were told, or happened before the member was to be told; null while nothing is mailed.
  sequence bigint,
  -- When the next daily mail is due.
  daily_at timestamptz not null,
  -- Nothing is mailed before this: the hour's mails are used up, or no mail could be written.
  quiet_until timestamptz,
  -- How many mails were written in which hour.
  hour timestamptz not null,
  mails integer not null,
  primary key (store_id, member_id),
  foreign key (store_id, member_id) references memberships on delete cascade
);
create index payment_mail_cursors_by_member on payment_mail_cursors (member_id);
