-- How many mails of a kind all stores together have had written today, in UTC.
create table deployment_mail_counts (
  kind text primary key,
  day date not null,
  count integer not null
);
