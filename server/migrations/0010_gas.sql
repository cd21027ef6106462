-- Whether a node took these bytes, since when nodes have said that their settler cannot pay for them, and the last words
-- of a node that refused them. A fee is raised only over bytes that a node took.
alter table broadcasts add column taken_at timestamptz;
alter table broadcasts add column unfunded_at timestamptz;
alter table broadcasts add column refusal text;

-- What a full batch costs on top of its gas, on networks that charge for data; read together with the balance.
alter table settlers add column data_fee_wei numeric(78, 0) not null default 0;

-- What a mined transaction cost, once its receipt was read.
alter table transactions add column cost_wei numeric(78, 0);
create index transactions_to_cost on transactions (network, settler, mined_at)
  where mined_at is not null and cost_wei is null;

-- When a payment was found to have been mined without effect.
alter table authorizations add column failed_at timestamptz;
create index authorizations_failed on authorizations (network, payer, failed_at) where failed_at is not null;

-- Sums of what mined transactions cost, in the smallest unit of the native currency: by store and day (UTC) for the
-- quota, by settler and hour for the operator.
create table store_gas (
  store_id text collate "C" not null references stores,
  network text collate "C" not null,
  day date not null,
  spent numeric(78, 0) not null,
  payments bigint not null,
  failures bigint not null,
  primary key (store_id, network, day)
);

create table settler_gas (
  network text collate "C" not null,
  settler text collate "C" not null,
  hour timestamptz not null,
  spent numeric(78, 0) not null,
  payments bigint not null,
  failures bigint not null,
  primary key (network, settler, hour)
);
