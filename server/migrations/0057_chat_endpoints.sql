-- How events are sent to an endpoint. The URL of a Slack or Discord endpoint is a secret: `secrets` has it, sealed, and
-- `url` only what may be shown.
alter table webhook_endpoints add column format text not null default 'json'
  check (format in ('json', 'slack', 'discord'));
