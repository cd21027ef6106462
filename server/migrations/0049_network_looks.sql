-- When somebody last looked at a checkout that can be paid on a network: nodes are asked often only then.
create table network_looks (
  network text collate "C" primary key,
  looked_at timestamptz not null,
  -- Since when there was no long pause between looks.
  awake_since timestamptz not null
);
