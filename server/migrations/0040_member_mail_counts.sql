-- How many links were mailed on a day for the stores that a member owns, or by the member: one share, however many stores
-- they have. One row per member; the next day begins again at one.
create table member_mail_counts (
  member_id text collate "C" primary key references members,
  day date not null,
  count integer not null check (count > 0)
);
