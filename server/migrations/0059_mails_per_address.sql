-- breaking
-- The mails about payments of an hour are counted for each address, by its keyed hash, instead of for each member.
alter table mail_recipients add column mails integer not null default 1;
alter table payment_mail_cursors drop column hour, drop column mails;
