-- Blocks are stored where something was found, and as ends of ranges that were searched: numbers may be left out.
alter table blocks add column is_found boolean not null default true;
-- Up to here, enough providers have searched alike, late enough not to miss anything.
alter table followers add column settled_number bigint not null default 0;
update followers set settled_number = safe_number;
-- Whether the chain's head is known to be further than what was read.
alter table followers add column is_behind boolean not null default false;
