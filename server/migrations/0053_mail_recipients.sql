-- To whom a receipt was mailed within the last hour: a keyed hash of the address, so that nobody reads addresses here.
create table mail_recipients (
  recipient bytea primary key,
  mailed_at timestamptz not null
);
create index mail_recipients_by_time on mail_recipients (mailed_at);
