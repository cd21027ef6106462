CREATE FUNCTION public.clock() RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
  select now() + coalesce(nullif(current_setting('farthing.clock_offset', true), ''), '0')::interval
$$;

CREATE FUNCTION public.follow_credit() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  update authorizations a set is_credited = not a.is_credited
  where a.network = new.network and a.asset = new.asset and a.payer = new.payer and a.nonce = new.nonce
    and a.is_credited <> exists (select 1 from credits k where k.network = a.network and k.asset = a.asset
      and k.payer = a.payer and k.nonce = a.nonce and k.orphaned_at is null
      and k.checkout_id is not distinct from a.checkout_id);
  return null;
end $$;

CREATE FUNCTION public.guard_status() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if new.status <> old.status and not (old.status = 'OPEN' and new.status in ('PROCESSING', 'CANCELED'))
    and (pg_has_role('farthing_serve', 'usage') or pg_has_role('farthing_console', 'usage'))
    and not pg_has_role('farthing_work', 'usage')
  then
    raise insufficient_privilege
      using message = format('%s may not move a checkout from %s to %s', current_user, old.status, new.status);
  end if;
  return new;
end $$;

CREATE FUNCTION public.guard_wallet() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if (case when tg_op = 'INSERT' then new.registration > 0
        else new.registration <> old.registration or (old.retired_at is not null and new.retired_at is null) end)
    and pg_has_role('farthing_serve', 'usage') and not pg_has_role('farthing_console', 'usage')
    and (select coalesce(s.wallet_changes, case when s.mode = 'live' and exists (select 1 from memberships m
           where m.store_id = s.id and m.role = 'owner') then 'member' else 'key' end)
         from stores s where s.id = new.store_id) = 'member'
  then
    raise insufficient_privilege
      using message = format('%s may not put a wallet of %s to use: an owner confirms that', current_user, new.store_id);
  end if;
  return new;
end $$;

CREATE FUNCTION public.payment_owners(paid_to text, paid_at timestamp with time zone, in_mode text) RETURNS TABLE(store_id text, may_decide boolean)
    LANGUAGE sql STABLE
    AS $$
  with ranked as (
    select w.store_id, case when w.proven_at is not null then 1
      when w.retired_at is null or w.retired_at > paid_at then 2 else 3 end as rank
    from wallets w join stores s on s.id = w.store_id and s.mode = in_mode
    where w.pay_to = paid_to
      and (w.proven_at is not null or w.created_at <= paid_at and w.registration > 0)
  ), first as (
    select distinct r.store_id, r.rank from ranked r where r.rank = (select min(rank) from ranked)
  )
  select f.store_id, f.rank = 1 or (select count(*) from first) = 1 from first f
$$;

CREATE TABLE public.api_keys (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    secret_hash bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    label text,
    scopes text[],
    addresses text[] DEFAULT '{}'::text[] NOT NULL,
    last_used_at timestamp with time zone,
    CONSTRAINT api_keys_secret_hash_check CHECK ((octet_length(secret_hash) = 32))
);

CREATE TABLE public.authorizations (
    network text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    payer text NOT NULL COLLATE pg_catalog."C",
    nonce text NOT NULL COLLATE pg_catalog."C",
    checkout_id text COLLATE pg_catalog."C",
    store_id text COLLATE pg_catalog."C",
    state text NOT NULL,
    pay_to text NOT NULL COLLATE pg_catalog."C",
    amount numeric(78,0) NOT NULL,
    valid_after numeric(78,0) NOT NULL,
    valid_before numeric(78,0) NOT NULL,
    signature bytea NOT NULL,
    reason text,
    claimed_at timestamp with time zone NOT NULL,
    sends integer DEFAULT 0 NOT NULL,
    is_contract boolean DEFAULT false NOT NULL,
    spent_block_number bigint,
    spent_block_hash text COLLATE pg_catalog."C",
    spent_reason text,
    payment_identifier text COLLATE pg_catalog."C",
    resolved_at timestamp with time zone,
    is_credited boolean DEFAULT false NOT NULL,
    settler text COLLATE pg_catalog."C",
    failed_at timestamp with time zone,
    CONSTRAINT authorizations_amount_check CHECK ((amount > (0)::numeric)),
    CONSTRAINT authorizations_check CHECK (((checkout_id IS NULL) = (store_id IS NULL))),
    CONSTRAINT authorizations_state_check CHECK ((state = ANY (ARRAY['claimed'::text, 'sent'::text, 'rejected'::text, 'dead'::text])))
)
WITH (fillfactor='50');

CREATE TABLE public.blocks (
    network text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    hash text NOT NULL COLLATE pg_catalog."C",
    parent_hash text NOT NULL COLLATE pg_catalog."C",
    block_time timestamp with time zone NOT NULL,
    told_by text[] DEFAULT '{}'::text[] NOT NULL
);

CREATE TABLE public.broadcasts (
    hash text NOT NULL COLLATE pg_catalog."C",
    network text NOT NULL COLLATE pg_catalog."C",
    settler text NOT NULL COLLATE pg_catalog."C",
    nonce bigint NOT NULL,
    bytes bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    first_sent_at timestamp with time zone,
    last_sent_at timestamp with time zone,
    taken_at timestamp with time zone,
    unfunded_at timestamp with time zone,
    refusal text
);

CREATE TABLE public.challenges (
    hash bytea NOT NULL,
    purpose text NOT NULL,
    browser_hash bytea NOT NULL,
    subject_hash bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT challenges_browser_hash_check CHECK ((octet_length(browser_hash) = 32)),
    CONSTRAINT challenges_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT challenges_purpose_check CHECK ((purpose = ANY (ARRAY['sign_in'::text, 'enrol'::text, 'add_passkey'::text, 'confirm'::text, 'oidc'::text]))),
    CONSTRAINT challenges_subject_hash_check CHECK ((octet_length(subject_hash) = 32))
);

CREATE TABLE public.checkouts (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    order_id text NOT NULL COLLATE pg_catalog."C",
    price_amount text NOT NULL,
    price_currency text NOT NULL,
    success_redirect_url text,
    options json NOT NULL,
    rate json,
    finality text NOT NULL,
    status text NOT NULL,
    version integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    page_version integer DEFAULT 0 NOT NULL,
    cancel_url text,
    CONSTRAINT checkouts_check CHECK ((expires_at > created_at)),
    CONSTRAINT checkouts_finality_check CHECK ((finality = ANY (ARRAY['included'::text, 'safe'::text, 'finalized'::text]))),
    CONSTRAINT checkouts_order_id_check CHECK (((octet_length(order_id) >= 1) AND (octet_length(order_id) <= 255))),
    CONSTRAINT checkouts_price_currency_check CHECK ((price_currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT checkouts_status_check CHECK ((status = ANY (ARRAY['OPEN'::text, 'PROCESSING'::text, 'COMPLETED'::text, 'EXPIRED'::text, 'CANCELED'::text]))),
    CONSTRAINT checkouts_version_check CHECK ((version >= 1))
);

CREATE TABLE public.credits (
    network text NOT NULL COLLATE pg_catalog."C",
    block_hash text NOT NULL COLLATE pg_catalog."C",
    log_index integer NOT NULL,
    payment_id text NOT NULL COLLATE pg_catalog."C",
    block_number bigint NOT NULL,
    block_time timestamp with time zone NOT NULL,
    transaction_hash text NOT NULL COLLATE pg_catalog."C",
    "position" integer NOT NULL,
    asset text NOT NULL COLLATE pg_catalog."C",
    payer text NOT NULL COLLATE pg_catalog."C",
    nonce text COLLATE pg_catalog."C",
    pay_to text NOT NULL COLLATE pg_catalog."C",
    amount numeric(78,0) NOT NULL,
    store_id text COLLATE pg_catalog."C",
    checkout_id text COLLATE pg_catalog."C",
    disposition text NOT NULL,
    first_seen_block_time timestamp with time zone NOT NULL,
    included_at timestamp with time zone NOT NULL,
    safe_at timestamp with time zone,
    finalized_at timestamp with time zone,
    reversed_at timestamp with time zone,
    orphaned_at timestamp with time zone,
    announced text,
    accepted_at timestamp with time zone,
    dismissed_at timestamp with time zone,
    sender text COLLATE pg_catalog."C",
    sender_nonce bigint,
    witnessed_at timestamp with time zone,
    counts boolean DEFAULT true NOT NULL,
    CONSTRAINT credits_amount_check CHECK ((amount > (0)::numeric)),
    CONSTRAINT credits_check CHECK (((disposition = 'unmatched'::text) OR (checkout_id IS NOT NULL))),
    CONSTRAINT credits_disposition_check CHECK ((disposition = ANY (ARRAY['exact'::text, 'late'::text, 'underpaid'::text, 'overpaid'::text, 'unmatched'::text]))),
    CONSTRAINT credits_position_check CHECK (("position" >= 0))
)
WITH (fillfactor='50');

CREATE TABLE public.decisions (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    payment_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    checkout_id text COLLATE pg_catalog."C",
    actor json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    decided_at timestamp with time zone,
    outcome json,
    CONSTRAINT decisions_check CHECK (((decided_at IS NULL) = (outcome IS NULL))),
    CONSTRAINT decisions_check1 CHECK (((kind = 'accept'::text) OR (checkout_id IS NULL))),
    CONSTRAINT decisions_kind_check CHECK ((kind = ANY (ARRAY['accept'::text, 'dismiss'::text])))
);

CREATE TABLE public.deliveries (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    endpoint_id text NOT NULL COLLATE pg_catalog."C",
    event_id text NOT NULL COLLATE pg_catalog."C",
    state text DEFAULT 'pending'::text NOT NULL,
    attempt integer DEFAULT 0 NOT NULL,
    run_at timestamp with time zone NOT NULL,
    leased_until timestamp with time zone,
    sequence bigint NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    finished_at timestamp with time zone,
    is_security boolean DEFAULT false NOT NULL,
    CONSTRAINT deliveries_check CHECK (((state = 'pending'::text) = (finished_at IS NULL))),
    CONSTRAINT deliveries_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'undeliverable'::text])))
);

CREATE TABLE public.delivery_attempts (
    delivery_id text NOT NULL COLLATE pg_catalog."C",
    attempt integer NOT NULL,
    started_at timestamp with time zone NOT NULL,
    duration_ms integer,
    status integer,
    error text,
    answer text
);

CREATE TABLE public.event_counters (
    store_id text NOT NULL COLLATE pg_catalog."C",
    last_sequence bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.event_log (
    only_row boolean DEFAULT true NOT NULL,
    epoch integer DEFAULT 1 NOT NULL,
    CONSTRAINT event_log_only_row_check CHECK (only_row)
);

CREATE TABLE public.events (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    "position" bigint NOT NULL,
    sequence bigint,
    type text NOT NULL,
    checkout_id text COLLATE pg_catalog."C",
    checkout_version integer,
    data json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    actor json,
    CONSTRAINT events_check CHECK (((checkout_id IS NULL) = (checkout_version IS NULL)))
);

ALTER TABLE public.events ALTER COLUMN "position" ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.events_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.followers (
    network text NOT NULL COLLATE pg_catalog."C",
    lease_holder text,
    leased_until timestamp with time zone,
    head_number bigint DEFAULT 0 NOT NULL,
    head_time timestamp with time zone,
    base_fee numeric(78,0),
    head_seen_at timestamp with time zone,
    safe_number bigint DEFAULT 0 NOT NULL,
    finalized_number bigint DEFAULT 0 NOT NULL,
    witnesses integer,
    dispute text,
    disputed_at timestamp with time zone
);

CREATE TABLE public.granted_rights (
    only_row boolean DEFAULT true NOT NULL,
    sql text NOT NULL,
    CONSTRAINT granted_rights_only_row_check CHECK (only_row)
);

CREATE TABLE public.idempotency_keys (
    store_id text NOT NULL COLLATE pg_catalog."C",
    route text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    body_hash bytea NOT NULL,
    resource_id text NOT NULL COLLATE pg_catalog."C",
    answer text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT idempotency_keys_body_hash_check CHECK ((octet_length(body_hash) = 32)),
    CONSTRAINT idempotency_keys_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 255)))
);

CREATE TABLE public.identities (
    issuer text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    member_id text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.invitations (
    id text NOT NULL COLLATE pg_catalog."C",
    token_hash bytea NOT NULL,
    store_id text NOT NULL COLLATE pg_catalog."C",
    member_id text NOT NULL COLLATE pg_catalog."C",
    is_recovery boolean NOT NULL,
    name text NOT NULL,
    email text,
    role text NOT NULL,
    invited_by text COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT invitations_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'manager'::text, 'developer'::text, 'viewer'::text]))),
    CONSTRAINT invitations_token_hash_check CHECK ((octet_length(token_hash) = 32))
);

CREATE TABLE public.mails (
    id text NOT NULL COLLATE pg_catalog."C",
    about text NOT NULL,
    key_id text NOT NULL,
    sealed text NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT mails_tries_check CHECK ((tries >= 0))
);

CREATE TABLE public.members (
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    email text,
    is_operator boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.memberships (
    store_id text NOT NULL COLLATE pg_catalog."C",
    member_id text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    wallets_seen_at timestamp with time zone,
    CONSTRAINT memberships_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'manager'::text, 'developer'::text, 'viewer'::text])))
);

CREATE TABLE public.node_faults (
    network text NOT NULL COLLATE pg_catalog."C",
    provider text NOT NULL COLLATE pg_catalog."C",
    fault text NOT NULL,
    faults bigint NOT NULL,
    last_at timestamp with time zone NOT NULL
);

CREATE TABLE public.passkeys (
    id text NOT NULL COLLATE pg_catalog."C",
    credential_id text NOT NULL COLLATE pg_catalog."C",
    member_id text NOT NULL COLLATE pg_catalog."C",
    public_key bytea NOT NULL,
    counter bigint NOT NULL,
    transports text[] DEFAULT '{}'::text[] NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone,
    CONSTRAINT passkeys_counter_check CHECK ((counter >= 0))
);

CREATE TABLE public.pasted_transactions (
    checkout_id text NOT NULL COLLATE pg_catalog."C",
    network text NOT NULL COLLATE pg_catalog."C",
    transaction_hash text NOT NULL COLLATE pg_catalog."C",
    pasted_at timestamp with time zone NOT NULL,
    looked_at timestamp with time zone,
    outcome text DEFAULT 'looking'::text NOT NULL,
    CONSTRAINT pasted_transactions_outcome_check CHECK ((outcome = ANY (ARRAY['looking'::text, 'applied'::text, 'hinted'::text, 'not_found'::text])))
);

CREATE TABLE public.payment_hints (
    payment_id text NOT NULL COLLATE pg_catalog."C",
    checkout_id text NOT NULL COLLATE pg_catalog."C",
    disposition text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT payment_hints_disposition_check CHECK ((disposition = ANY (ARRAY['late'::text, 'underpaid'::text, 'overpaid'::text, 'unmatched'::text])))
);

CREATE TABLE public.rates (
    source text NOT NULL COLLATE pg_catalog."C",
    currency text NOT NULL COLLATE pg_catalog."C",
    per_base numeric NOT NULL,
    as_of timestamp with time zone NOT NULL,
    CONSTRAINT rates_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
    CONSTRAINT rates_per_base_check CHECK ((per_base > (0)::numeric))
);

CREATE TABLE public.reserved_amounts (
    checkout_id text NOT NULL COLLATE pg_catalog."C",
    network text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    pay_to text NOT NULL COLLATE pg_catalog."C",
    amount numeric(78,0) NOT NULL,
    after_block bigint NOT NULL,
    reserved_at timestamp with time zone NOT NULL,
    cools_until timestamp with time zone,
    freed_at timestamp with time zone,
    reference text COLLATE pg_catalog."C",
    looked_at timestamp with time zone,
    CONSTRAINT reserved_amounts_amount_check CHECK ((amount > (0)::numeric))
);

CREATE TABLE public.restores (
    network text NOT NULL COLLATE pg_catalog."C",
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    since timestamp with time zone
);

CREATE TABLE public.schedules (
    name text NOT NULL COLLATE pg_catalog."C",
    run_at timestamp with time zone NOT NULL,
    leased_until timestamp with time zone,
    attempt bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.schema_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    sql text NOT NULL,
    breaking boolean NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.sessions (
    id text NOT NULL COLLATE pg_catalog."C",
    token_hash bytea NOT NULL,
    member_id text NOT NULL COLLATE pg_catalog."C",
    passkey_id text COLLATE pg_catalog."C",
    browser text NOT NULL,
    address text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT sessions_token_hash_check CHECK ((octet_length(token_hash) = 32))
);

CREATE TABLE public.settler_gas (
    network text NOT NULL COLLATE pg_catalog."C",
    settler text NOT NULL COLLATE pg_catalog."C",
    hour timestamp with time zone NOT NULL,
    spent numeric(78,0) NOT NULL,
    payments bigint NOT NULL,
    failures bigint NOT NULL
);

CREATE TABLE public.settlers (
    network text NOT NULL COLLATE pg_catalog."C",
    address text NOT NULL COLLATE pg_catalog."C",
    state text DEFAULT 'active'::text NOT NULL,
    next_nonce bigint NOT NULL,
    lease_holder text,
    leased_until timestamp with time zone,
    epoch bigint DEFAULT 0 NOT NULL,
    alive_at timestamp with time zone,
    mined_nonce bigint DEFAULT 0 NOT NULL,
    balance_wei numeric(78,0),
    balance_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    data_fee_wei numeric(78,0) DEFAULT 0 NOT NULL,
    CONSTRAINT settlers_next_nonce_check CHECK ((next_nonce >= 0)),
    CONSTRAINT settlers_state_check CHECK ((state = ANY (ARRAY['active'::text, 'draining'::text, 'retired'::text])))
);

CREATE TABLE public.store_gas (
    store_id text NOT NULL COLLATE pg_catalog."C",
    network text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    spent numeric(78,0) NOT NULL,
    payments bigint NOT NULL,
    failures bigint NOT NULL
);

CREATE TABLE public.stores (
    id text NOT NULL COLLATE pg_catalog."C",
    mode text NOT NULL,
    name text NOT NULL,
    logo_url text,
    accent_color text,
    finality_policy jsonb NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    support_email text,
    support_url text,
    wallet_changes text,
    CONSTRAINT stores_accent_color_check CHECK ((accent_color ~ '^#[0-9a-f]{6}$'::text)),
    CONSTRAINT stores_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text]))),
    CONSTRAINT stores_wallet_changes_check CHECK ((wallet_changes = ANY (ARRAY['key'::text, 'member'::text])))
);

CREATE TABLE public.token_accounts (
    network text NOT NULL COLLATE pg_catalog."C",
    asset text NOT NULL COLLATE pg_catalog."C",
    owner text NOT NULL COLLATE pg_catalog."C",
    ready_at timestamp with time zone,
    checked_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone,
    creations integer DEFAULT 0 NOT NULL
);

CREATE TABLE public.transaction_calls (
    network text NOT NULL COLLATE pg_catalog."C",
    settler text NOT NULL COLLATE pg_catalog."C",
    settler_nonce bigint NOT NULL,
    place integer NOT NULL,
    asset text NOT NULL COLLATE pg_catalog."C",
    payer text NOT NULL COLLATE pg_catalog."C",
    nonce text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT transaction_calls_place_check CHECK ((place >= 0))
);

CREATE TABLE public.transactions (
    network text NOT NULL COLLATE pg_catalog."C",
    settler text NOT NULL COLLATE pg_catalog."C",
    nonce bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    mined_at timestamp with time zone,
    cost_wei numeric(78,0),
    CONSTRAINT transactions_nonce_check CHECK ((nonce >= 0))
);

CREATE TABLE public.wallet_changes (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    family text NOT NULL,
    kind text NOT NULL,
    wallet_id text NOT NULL COLLATE pg_catalog."C",
    actor json NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    ended_at timestamp with time zone,
    made integer,
    made_at timestamp with time zone,
    confirmed_by json,
    previous_id text COLLATE pg_catalog."C",
    next_id text COLLATE pg_catalog."C",
    undone_at timestamp with time zone,
    undone_by json,
    cancel_at timestamp with time zone,
    CONSTRAINT wallet_changes_check CHECK (((made IS NULL) = (made_at IS NULL))),
    CONSTRAINT wallet_changes_check1 CHECK (((made IS NULL) OR (ended_at IS NULL))),
    CONSTRAINT wallet_changes_check2 CHECK (((undone_at IS NULL) OR (made IS NOT NULL))),
    CONSTRAINT wallet_changes_check3 CHECK (((undone_at IS NULL) = (undone_by IS NULL))),
    CONSTRAINT wallet_changes_family_check CHECK ((family = ANY (ARRAY['EVM'::text, 'SOLANA'::text]))),
    CONSTRAINT wallet_changes_kind_check CHECK ((kind = ANY (ARRAY['use'::text, 'retire'::text])))
);

CREATE TABLE public.wallets (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    family text NOT NULL,
    address text NOT NULL COLLATE pg_catalog."C",
    custodial_type text NOT NULL,
    registration bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    retired_at timestamp with time zone,
    pay_to text GENERATED ALWAYS AS (
CASE family
    WHEN 'EVM'::text THEN lower(address)
    ELSE address
END) STORED NOT NULL COLLATE pg_catalog."C",
    challenge text,
    challenge_expires_at timestamp with time zone,
    proven_at timestamp with time zone,
    shared_elsewhere boolean DEFAULT false NOT NULL,
    CONSTRAINT wallets_check CHECK (((challenge IS NULL) = (challenge_expires_at IS NULL))),
    CONSTRAINT wallets_custodial_type_check CHECK ((custodial_type = ANY (ARRAY['CUSTODIAL'::text, 'NON_CUSTODIAL'::text]))),
    CONSTRAINT wallets_family_check CHECK ((family = ANY (ARRAY['EVM'::text, 'SOLANA'::text])))
);

ALTER TABLE public.wallets ALTER COLUMN registration ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.wallets_registration_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.webhook_endpoints (
    id text NOT NULL COLLATE pg_catalog."C",
    store_id text NOT NULL COLLATE pg_catalog."C",
    url text NOT NULL,
    types text[] DEFAULT '{}'::text[] NOT NULL,
    secrets jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    disabled_at timestamp with time zone,
    is_ordered boolean DEFAULT false NOT NULL,
    disabled_reason text,
    deleted_at timestamp with time zone,
    failing_since timestamp with time zone,
    held_until timestamp with time zone,
    due_at timestamp with time zone,
    CONSTRAINT webhook_endpoints_check CHECK (((disabled_at IS NULL) = (disabled_reason IS NULL))),
    CONSTRAINT webhook_endpoints_check1 CHECK (((deleted_at IS NULL) OR (disabled_at IS NOT NULL))),
    CONSTRAINT webhook_endpoints_disabled_reason_check CHECK ((disabled_reason = ANY (ARRAY['store'::text, 'gone'::text, 'failing'::text])))
);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.authorizations
    ADD CONSTRAINT authorizations_pkey PRIMARY KEY (payer, nonce, asset, network);

ALTER TABLE ONLY public.blocks
    ADD CONSTRAINT blocks_pkey PRIMARY KEY (network, number);

ALTER TABLE ONLY public.broadcasts
    ADD CONSTRAINT broadcasts_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY public.challenges
    ADD CONSTRAINT challenges_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY public.checkouts
    ADD CONSTRAINT checkouts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.credits
    ADD CONSTRAINT credits_pkey PRIMARY KEY (block_hash, log_index, network);

ALTER TABLE ONLY public.decisions
    ADD CONSTRAINT decisions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_endpoint_id_event_id_key UNIQUE (endpoint_id, event_id);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.delivery_attempts
    ADD CONSTRAINT delivery_attempts_pkey PRIMARY KEY (delivery_id, attempt);

ALTER TABLE ONLY public.event_counters
    ADD CONSTRAINT event_counters_pkey PRIMARY KEY (store_id);

ALTER TABLE ONLY public.event_log
    ADD CONSTRAINT event_log_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.followers
    ADD CONSTRAINT followers_pkey PRIMARY KEY (network);

ALTER TABLE ONLY public.granted_rights
    ADD CONSTRAINT granted_rights_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (store_id, route, key);

ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_pkey PRIMARY KEY (issuer, subject);

ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.mails
    ADD CONSTRAINT mails_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_pkey PRIMARY KEY (store_id, member_id);

ALTER TABLE ONLY public.node_faults
    ADD CONSTRAINT node_faults_pkey PRIMARY KEY (network, provider);

ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_credential_id_key UNIQUE (credential_id);

ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.pasted_transactions
    ADD CONSTRAINT pasted_transactions_pkey PRIMARY KEY (checkout_id, network, transaction_hash);

ALTER TABLE ONLY public.payment_hints
    ADD CONSTRAINT payment_hints_pkey PRIMARY KEY (payment_id, checkout_id);

ALTER TABLE ONLY public.rates
    ADD CONSTRAINT rates_pkey PRIMARY KEY (source, currency);

ALTER TABLE ONLY public.reserved_amounts
    ADD CONSTRAINT reserved_amounts_pkey PRIMARY KEY (checkout_id, network, asset);

ALTER TABLE ONLY public.restores
    ADD CONSTRAINT restores_pkey PRIMARY KEY (network);

ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.settler_gas
    ADD CONSTRAINT settler_gas_pkey PRIMARY KEY (network, settler, hour);

ALTER TABLE ONLY public.settlers
    ADD CONSTRAINT settlers_pkey PRIMARY KEY (network, address);

ALTER TABLE ONLY public.store_gas
    ADD CONSTRAINT store_gas_pkey PRIMARY KEY (store_id, network, day);

ALTER TABLE ONLY public.stores
    ADD CONSTRAINT stores_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.token_accounts
    ADD CONSTRAINT token_accounts_pkey PRIMARY KEY (network, asset, owner);

ALTER TABLE ONLY public.transaction_calls
    ADD CONSTRAINT transaction_calls_pkey PRIMARY KEY (settler, settler_nonce, network, place);

ALTER TABLE ONLY public.transactions
    ADD CONSTRAINT transactions_pkey PRIMARY KEY (network, settler, nonce);

ALTER TABLE ONLY public.wallet_changes
    ADD CONSTRAINT wallet_changes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.wallets
    ADD CONSTRAINT wallets_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id);

CREATE INDEX api_keys_by_store ON public.api_keys USING btree (store_id, id);

CREATE UNIQUE INDEX authorizations_by_identifier ON public.authorizations USING btree (store_id, payment_identifier) WHERE (payment_identifier IS NOT NULL);

CREATE INDEX authorizations_ended ON public.authorizations USING btree (checkout_id) WHERE (state = ANY (ARRAY['rejected'::text, 'dead'::text]));

CREATE INDEX authorizations_failed ON public.authorizations USING btree (payer, network, failed_at) WHERE (failed_at IS NOT NULL);

CREATE INDEX authorizations_in_flight ON public.authorizations USING btree (payer, asset, network) WHERE ((state = ANY (ARRAY['claimed'::text, 'sent'::text])) AND (NOT is_credited));

CREATE UNIQUE INDEX authorizations_one_unresolved_per_checkout ON public.authorizations USING btree (checkout_id) WHERE (state = ANY (ARRAY['claimed'::text, 'sent'::text]));

CREATE INDEX authorizations_spent ON public.authorizations USING btree (network, spent_block_number) WHERE (spent_block_number IS NOT NULL);

CREATE INDEX authorizations_to_settle ON public.authorizations USING btree (network, claimed_at) WHERE (state = 'claimed'::text);

CREATE INDEX authorizations_unresolved ON public.authorizations USING btree (valid_before, network) WHERE ((state = ANY (ARRAY['claimed'::text, 'sent'::text])) AND (NOT is_credited));

CREATE INDEX broadcasts_by_transaction ON public.broadcasts USING btree (network, settler, nonce);

CREATE INDEX challenges_by_end ON public.challenges USING btree (expires_at);

CREATE INDEX checkouts_by_order ON public.checkouts USING btree (store_id, order_id, id);

CREATE INDEX checkouts_by_status ON public.checkouts USING btree (store_id, status, id);

CREATE INDEX checkouts_by_store ON public.checkouts USING btree (store_id, id);

CREATE INDEX checkouts_processing ON public.checkouts USING btree (id) WHERE (status = 'PROCESSING'::text);

CREATE INDEX checkouts_to_expire ON public.checkouts USING btree (expires_at) WHERE (status = 'OPEN'::text);

CREATE INDEX credits_by_checkout ON public.credits USING btree (checkout_id);

CREATE INDEX credits_by_payment ON public.credits USING btree (payment_id);

CREATE INDEX credits_by_store ON public.credits USING btree (store_id, payment_id);

CREATE INDEX credits_by_wallet ON public.credits USING btree (pay_to, payment_id) WHERE (checkout_id IS NULL);

CREATE INDEX credits_not_final ON public.credits USING btree (network, block_number) WHERE ((orphaned_at IS NULL) AND (finalized_at IS NULL));

CREATE UNIQUE INDEX credits_one_exact_per_checkout ON public.credits USING btree (checkout_id) WHERE ((orphaned_at IS NULL) AND (disposition = 'exact'::text));

CREATE UNIQUE INDEX credits_one_per_authorization ON public.credits USING btree (nonce, payer, asset, network) WHERE ((orphaned_at IS NULL) AND (nonce IS NOT NULL));

CREATE UNIQUE INDEX credits_one_per_log ON public.credits USING btree (transaction_hash, network, asset, payer, pay_to, amount, "position") WHERE (orphaned_at IS NULL);

CREATE INDEX credits_orphaned_by_authorization ON public.credits USING btree (nonce, payer, asset, network) WHERE ((orphaned_at IS NOT NULL) AND (nonce IS NOT NULL));

CREATE INDEX credits_orphaned_by_transaction ON public.credits USING btree (transaction_hash) WHERE (orphaned_at IS NOT NULL);

CREATE INDEX credits_taken_back ON public.credits USING btree (network) WHERE ((orphaned_at IS NOT NULL) AND (reversed_at IS NULL) AND (nonce IS NULL));

CREATE INDEX credits_to_decide ON public.credits USING btree (store_id, disposition, payment_id) WHERE (disposition <> 'exact'::text);

CREATE INDEX credits_told_alone ON public.credits USING btree (network) WHERE ((witnessed_at IS NULL) AND (orphaned_at IS NULL));

CREATE INDEX credits_unannounced ON public.credits USING btree (network) WHERE ((orphaned_at IS NULL) AND (checkout_id IS NULL) AND (announced IS NULL));

CREATE INDEX credits_undecided ON public.credits USING btree (network, asset, amount) WHERE ((orphaned_at IS NULL) AND (checkout_id IS NULL) AND (dismissed_at IS NULL));

CREATE INDEX credits_unmatched ON public.credits USING btree (network, asset, payer, nonce) WHERE ((orphaned_at IS NULL) AND (checkout_id IS NULL));

CREATE INDEX credits_withdrawn ON public.credits USING btree (network, orphaned_at) WHERE (log_index < 0);

CREATE INDEX decisions_applied ON public.decisions USING btree (decided_at) WHERE (decided_at IS NOT NULL);

CREATE INDEX decisions_to_apply ON public.decisions USING btree (id) WHERE (decided_at IS NULL);

CREATE UNIQUE INDEX decisions_waiting ON public.decisions USING btree (payment_id, store_id, kind, COALESCE(checkout_id, ''::text)) WHERE (decided_at IS NULL);

CREATE INDEX deliveries_due ON public.deliveries USING btree (endpoint_id, run_at) WHERE (state = 'pending'::text);

CREATE INDEX deliveries_in_order ON public.deliveries USING btree (endpoint_id, sequence) WHERE (state = 'pending'::text);

CREATE UNIQUE INDEX events_by_sequence ON public.events USING btree (store_id, sequence) WHERE (sequence IS NOT NULL);

CREATE UNIQUE INDEX events_one_per_version ON public.events USING btree (checkout_id, checkout_version, (
CASE
    WHEN (type ~~ 'checkout.%'::text) THEN ''::text
    ELSE id
END)) WHERE (checkout_id IS NOT NULL);

CREATE INDEX events_unsequenced ON public.events USING btree (store_id, "position") WHERE (sequence IS NULL);

CREATE INDEX idempotency_keys_by_age ON public.idempotency_keys USING brin (created_at);

CREATE INDEX identities_by_member ON public.identities USING btree (member_id);

CREATE INDEX invitations_by_inviter ON public.invitations USING btree (invited_by);

CREATE INDEX invitations_by_member ON public.invitations USING btree (member_id);

CREATE INDEX invitations_by_store ON public.invitations USING btree (store_id, id) WHERE (used_at IS NULL);

CREATE INDEX mails_by_due ON public.mails USING btree (due_at);

CREATE INDEX memberships_by_member ON public.memberships USING btree (member_id);

CREATE INDEX passkeys_by_member ON public.passkeys USING btree (member_id, id);

CREATE INDEX pasted_transactions_to_look_up ON public.pasted_transactions USING btree (network, pasted_at) WHERE (outcome = 'looking'::text);

CREATE INDEX payment_hints_by_checkout ON public.payment_hints USING btree (checkout_id);

CREATE UNIQUE INDEX reserved_amounts_by_reference ON public.reserved_amounts USING btree (reference) WHERE (reference IS NOT NULL);

CREATE UNIQUE INDEX reserved_amounts_held ON public.reserved_amounts USING btree (network, asset, pay_to, amount) WHERE ((freed_at IS NULL) AND (reference IS NULL));

CREATE INDEX reserved_amounts_to_look_for ON public.reserved_amounts USING btree (network, looked_at) WHERE ((reference IS NOT NULL) AND (freed_at IS NULL));

CREATE INDEX sessions_by_end ON public.sessions USING btree (expires_at);

CREATE INDEX sessions_by_member ON public.sessions USING btree (member_id, id);

CREATE INDEX token_accounts_by_creation ON public.token_accounts USING btree (created_at) WHERE (created_at IS NOT NULL);

CREATE INDEX token_accounts_by_owner ON public.token_accounts USING btree (owner) WHERE (ready_at IS NOT NULL);

CREATE INDEX transaction_calls_by_authorization ON public.transaction_calls USING btree (nonce, payer, asset, network);

CREATE INDEX transactions_to_cost ON public.transactions USING btree (network, settler, mined_at) WHERE ((mined_at IS NOT NULL) AND (cost_wei IS NULL));

CREATE INDEX transactions_unmined ON public.transactions USING btree (network, settler, nonce) WHERE (mined_at IS NULL);

CREATE INDEX wallet_changes_by_store ON public.wallet_changes USING btree (store_id, asked_at);

CREATE INDEX wallet_changes_by_wallet ON public.wallet_changes USING btree (wallet_id) WHERE ((made IS NULL) AND (ended_at IS NULL));

CREATE UNIQUE INDEX wallet_changes_made ON public.wallet_changes USING btree (store_id, made);

CREATE UNIQUE INDEX wallet_changes_one_waiting ON public.wallet_changes USING btree (store_id, family) WHERE ((made IS NULL) AND (ended_at IS NULL));

CREATE INDEX wallet_changes_to_cancel ON public.wallet_changes USING btree (cancel_at) WHERE (cancel_at IS NOT NULL);

CREATE INDEX wallets_by_pay_to ON public.wallets USING btree (pay_to);

CREATE INDEX wallets_by_solana_address ON public.wallets USING btree (address) WHERE (family = 'SOLANA'::text);

CREATE INDEX wallets_by_store ON public.wallets USING btree (store_id, id);

CREATE UNIQUE INDEX wallets_one_active_per_address ON public.wallets USING btree (store_id, family, address) WHERE (retired_at IS NULL);

CREATE INDEX webhook_endpoints_by_store ON public.webhook_endpoints USING btree (store_id, id);

CREATE INDEX webhook_endpoints_due ON public.webhook_endpoints USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE UNIQUE INDEX webhook_endpoints_one_per_url ON public.webhook_endpoints USING btree (store_id, url) WHERE (deleted_at IS NULL);

CREATE TRIGGER credit_is_followed AFTER INSERT OR UPDATE OF orphaned_at, checkout_id ON public.credits FOR EACH ROW WHEN ((new.nonce IS NOT NULL)) EXECUTE FUNCTION public.follow_credit();

CREATE TRIGGER status_is_guarded BEFORE UPDATE OF status ON public.checkouts FOR EACH ROW EXECUTE FUNCTION public.guard_status();

CREATE TRIGGER use_is_guarded BEFORE INSERT OR UPDATE OF registration, retired_at ON public.wallets FOR EACH ROW EXECUTE FUNCTION public.guard_wallet();

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.broadcasts
    ADD CONSTRAINT broadcasts_network_settler_nonce_fkey FOREIGN KEY (network, settler, nonce) REFERENCES public.transactions(network, settler, nonce);

ALTER TABLE ONLY public.decisions
    ADD CONSTRAINT decisions_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES public.webhook_endpoints(id);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_event_id_fkey FOREIGN KEY (event_id) REFERENCES public.events(id);

ALTER TABLE ONLY public.delivery_attempts
    ADD CONSTRAINT delivery_attempts_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES public.deliveries(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.event_counters
    ADD CONSTRAINT event_counters_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_member_id_fkey FOREIGN KEY (member_id) REFERENCES public.members(id);

ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_invited_by_fkey FOREIGN KEY (invited_by) REFERENCES public.members(id);

ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_member_id_fkey FOREIGN KEY (member_id) REFERENCES public.members(id);

ALTER TABLE ONLY public.memberships
    ADD CONSTRAINT memberships_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.passkeys
    ADD CONSTRAINT passkeys_member_id_fkey FOREIGN KEY (member_id) REFERENCES public.members(id);

ALTER TABLE ONLY public.pasted_transactions
    ADD CONSTRAINT pasted_transactions_checkout_id_fkey FOREIGN KEY (checkout_id) REFERENCES public.checkouts(id);

ALTER TABLE ONLY public.payment_hints
    ADD CONSTRAINT payment_hints_checkout_id_fkey FOREIGN KEY (checkout_id) REFERENCES public.checkouts(id);

ALTER TABLE ONLY public.reserved_amounts
    ADD CONSTRAINT reserved_amounts_checkout_id_fkey FOREIGN KEY (checkout_id) REFERENCES public.checkouts(id);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_member_id_fkey FOREIGN KEY (member_id) REFERENCES public.members(id);

ALTER TABLE ONLY public.store_gas
    ADD CONSTRAINT store_gas_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.transactions
    ADD CONSTRAINT transactions_network_settler_fkey FOREIGN KEY (network, settler) REFERENCES public.settlers(network, address);

ALTER TABLE ONLY public.wallet_changes
    ADD CONSTRAINT wallet_changes_next_id_fkey FOREIGN KEY (next_id) REFERENCES public.wallets(id);

ALTER TABLE ONLY public.wallet_changes
    ADD CONSTRAINT wallet_changes_previous_id_fkey FOREIGN KEY (previous_id) REFERENCES public.wallets(id);

ALTER TABLE ONLY public.wallet_changes
    ADD CONSTRAINT wallet_changes_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.wallet_changes
    ADD CONSTRAINT wallet_changes_wallet_id_fkey FOREIGN KEY (wallet_id) REFERENCES public.wallets(id);

ALTER TABLE ONLY public.wallets
    ADD CONSTRAINT wallets_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

ALTER TABLE ONLY public.webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);

CREATE POLICY all_rows ON public.checkouts USING (true);

CREATE POLICY all_rows ON public.events USING (true);

CREATE POLICY all_rows ON public.wallet_changes USING (true);

CREATE POLICY all_rows ON public.wallets USING (true);

ALTER TABLE public.checkouts ENABLE ROW LEVEL SECURITY;

CREATE POLICY console_writes_its_own ON public.events AS RESTRICTIVE FOR INSERT TO farthing_console WITH CHECK (((sequence IS NULL) AND (starts_with(type, 'member.'::text) OR (type = ANY ('{wallet.confirmed,wallet.refused,wallet.undone,wallet.registered,wallet.retired,store.updated}'::text[])))));

CREATE POLICY created_open ON public.checkouts AS RESTRICTIVE FOR INSERT TO farthing_serve, farthing_console WITH CHECK ((status = 'OPEN'::text));

ALTER TABLE public.events ENABLE ROW LEVEL SECURITY;

CREATE POLICY one_store ON public.events AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.wallet_changes AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY one_store ON public.wallets AS RESTRICTIVE TO farthing_console USING ((store_id = current_setting('farthing.store'::text, true)));

CREATE POLICY serve_writes_its_own ON public.events AS RESTRICTIVE FOR INSERT TO farthing_serve WITH CHECK (((sequence IS NULL) AND (type = ANY ('{checkout.created,checkout.processing,checkout.canceled,store.updated,wallet.registered,wallet.updated,wallet.retired,wallet.refused,key.created,key.revoked,webhook_endpoint.created,webhook_endpoint.updated,webhook_endpoint.deleted,webhook_endpoint.test}'::text[]))));

ALTER TABLE public.wallet_changes ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.wallets ENABLE ROW LEVEL SECURITY;
