-- Mails that wait for the mail server: links, and news for owners. A row goes once the server has taken the mail.
create table mails (
  id text collate "C" primary key,
  -- What it is about, for the log: the id of an invitation or a store.
  about text not null,
  -- Recipient, subject and text, sealed with this key, because a link is a secret.
  key_id text not null,
  sealed text not null,
  tries integer not null default 0 check (tries >= 0),
  due_at timestamptz not null,
  created_at timestamptz not null
);
create index mails_by_due on mails (due_at);
