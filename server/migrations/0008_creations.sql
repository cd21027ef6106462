-- How often a settler undertook to create an account within a day of the time before: each costs its rent.
alter table token_accounts add column creations integer not null default 0;
update token_accounts set creations = 1 where created_at is not null;
