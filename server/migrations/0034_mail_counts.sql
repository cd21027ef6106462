-- How many mails of a kind a store has caused on a day, sent or not: its share is counted here, because a mail's own row
-- goes once it is sent. One row per store and kind; the next day begins again at one.
create table mail_counts (
  store_id text collate "C" not null references stores,
  kind text collate "C" not null,
  day date not null,
  count integer not null check (count > 0),
  primary key (store_id, kind)
);
