-- breaking
-- A refund that the store sends itself: "sent" is also a status.
drop index refunds_named;
alter table refunds drop constraint refunds_way_check;
update refunds set way = 'self-sent' where way = 'sent';
alter table refunds add constraint refunds_way_check check (way in ('signed', 'self-sent'));
create index refunds_named on refunds (network, looked_at)
  where status = 'SENT' and way = 'self-sent' and position is null;
