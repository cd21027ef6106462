import { countAllOpen, listRuns, readWaitingSince } from '../audit/read.ts'
import { isNative } from '../chains/evm/recover.ts'
import { describeCalls, describePlan } from '../chains/plans.ts'
import { describeLimits } from '../chains/probe.ts'
import { listLimitsRecords } from '../chains/record-nodes.ts'
import { listFaults, readFollower } from '../chains/rows.ts'
import { isNodeError } from '../chains/rpc.ts'
import { SignerAwayError } from '../chains/signers/signing.ts'
import { ConfigError } from '../config/read.ts'
import type { Context } from '../context.ts'
import { checkCell } from '../database/cell.ts'
import { checkSchema } from '../database/migrate.ts'
import { describeLacking, listConnections, listLacking, listTableMakers } from '../database/rights.ts'
import { handOver, SchemaError } from '../database/schema.ts'
import { findStandstill } from '../events/find-standstill.ts'
import { countByKey } from '../events/webhooks/reseal.ts'
import type { Finding } from '../http/console/operator/view.ts'
import { findRefused } from '../movements/find-refused.ts'
import { findLive, type Network, networks } from '../networks.ts'
import type { AnySigner, Rail, Rails } from '../payments/rail.ts'
import { openRails } from '../payments/rails.ts'
import { openReadiness } from '../payments/settlers/readiness.ts'
import { listSettlers, listStopped } from '../payments/settlers/rows.ts'
import { describeRunway, type Runway, readRunways } from '../payments/settlers/runway.ts'
import { Problem } from '../problems.ts'
import { listCurrencies } from '../rates/list.ts'
import { readSecretsKeys, type SecretsKey } from '../secrets/key-file.ts'
import { listStores } from '../stores/rows.ts'
import { examineDirectory } from './examine-directory.ts'

/** The database decides expiry, this process the age of rates: a payer would notice a larger difference. */
const clockApartMsMax = 2_000
/** Time to notice and to send money, at the rate of the last day. */
const hoursLeftWanted = 24n
/** The same for a settler that has no rate yet: a first buyer of each hour, and some who try again. */
const paymentsLeftWanted = 100n
const databaseVersionMin = 150_000
const checkWork = 'Check that work is running with these settings, and read its log.'

/**
 * Checks a deployment and reports, for everything that would keep a payment from being accepted, what is wrong and what
 * to do. It changes nothing. A check that needs one that failed is left out.
 */
export async function examine(
  ctx: Context,
  readSigners: () => Promise<readonly AnySigner[]>,
): Promise<Finding[]> {
  const findings = [examineCurve()]
  const database = await examineDatabase(ctx)
  findings.push(...database)
  if (database.some(({ fix }) => fix !== null)) return findings
  findings.push(
    ...(await examineRoles(ctx)),
    ...(await examineDirectory(ctx)),
    ...(await examineStores(ctx)),
    ...(await examineSecrets(ctx)),
    ...(await examineEvents(ctx)),
    ...(await examineBooks(ctx)),
    ...(await examineRates(ctx)),
    ...(await examineAudit(ctx)),
  )
  const rails = openRails(ctx)
  for (const rail of rails.values())
    if (ctx.config.networks.includes(rail.network.id))
      findings.push(...(await examineNetwork(ctx, rails, rail, readSigners)))
  return findings
}

export function render(findings: readonly Finding[]): string {
  return findings
    .map(({ what, says, fix }) =>
      fix === null ? `ok     ${what}: ${says}` : `WRONG  ${what}: ${says}\n       ${fix}`,
    )
    .join('\n')
}

function examineCurve(): Finding {
  const what = 'signatures'
  if (isNative) return { what, says: 'checked by libsecp256k1', fix: null }
  return {
    what,
    says: 'checked in JavaScript, which is about twenty times slower',
    fix: 'Reinstall on this platform, so that the package secp256k1 finds its native build.',
  }
}

async function examineDatabase(ctx: Context): Promise<Finding[]> {
  const before = ctx.now().getTime()
  try {
    const [row] = await ctx.db.query<{ version: string; number: number; now: Date }>(
      `select current_setting('server_version') as version, current_setting('server_version_num')::integer as number,
         clock_timestamp() as now`,
    )
    if (!row) return []
    const after = ctx.now().getTime()
    const databaseNow = row.now.getTime()
    const apartMs = Math.max(0, before - databaseNow, databaseNow - after)
    const findings: Finding[] = [
      {
        what: 'database',
        says: `PostgreSQL ${row.version}`,
        fix: row.number < databaseVersionMin ? 'Use PostgreSQL 15 or newer.' : null,
      },
      {
        what: 'clocks',
        says: `this machine and the database are ${apartMs} ms apart`,
        fix: apartMs > clockApartMsMax ? 'Synchronise both with NTP.' : null,
      },
    ]
    await checkSchema(ctx.db)
    await checkCell(ctx.db, ctx.config.cell)
    return [...findings, { what: 'schema', says: `up to date, cell ${ctx.config.cell}`, fix: null }]
  } catch (error) {
    if (error instanceof SchemaError) return [{ what: 'schema', says: error.says, fix: error.fix }]
    if (!(error instanceof Problem)) throw error
    const cause = error.cause instanceof Error ? ` ${error.cause.message}` : ''
    return [
      {
        what: 'database',
        says: `${error.message}${cause}`,
        fix: 'Check that PostgreSQL is running and that DATABASE_URL has the right address, user and password.',
      },
    ]
  }
}

/** A day is over at midnight, and compared soon after. */
const auditHoursMax = 26
/** Payments to wallets that no store has are looked up three days after their day. */
const changeHoursMax = 120

/** When each network was last compared, and what the comparison found. A deployment may do without the audit. */
async function examineAudit({ db, now }: Context): Promise<Finding[]> {
  const what = 'audit'
  const runs = await listRuns(db)
  if (runs.length === 0)
    return [{ what, says: 'has never run; without it nobody compares the books with the chains', fix: null }]
  const told = runs.map(({ network, ranAt, trouble, day }): Finding => {
    const hours = (now().getTime() - ranAt.getTime()) / 3_600_000
    const name = networks.find(({ caip2 }) => caip2 === network)?.id ?? network
    const says = `${name} ${day === null ? 'not compared yet' : `complete up to ${day}`}, last asked at ${ranAt.toISOString()}`
    if (hours > auditHoursMax) return { what, says, fix: 'Start the audit (docs/audit.md), or read its log.' }
    if (trouble !== null)
      return { what, says: `${says}: ${trouble}`, fix: 'See “What could not be compared” in docs/audit.md.' }
    return { what, says, fix: null }
  })
  const open = (await countAllOpen(db)).filter(({ kind }) => kind !== 'dust' && kind !== 'busy')
  const list = open.map(({ kind, count }) => `${count} ${kind}`).join(', ')
  const fix = 'Run farthing-admin audit check for the days, and see docs/audit.md for what to do.'
  const findings =
    open.length === 0 ? { says: 'no open findings', fix: null } : { says: `open findings: ${list}`, fix }
  const since = await readWaitingSince(db)
  if (since !== null && now().getTime() - since.getTime() > changeHoursMax * 3_600_000)
    told.push({
      what,
      says: `changed payments were not compared since ${since.toISOString()}`,
      fix: 'See “What could not be compared” in docs/audit.md.',
    })
  return [...told, { what, ...findings }]
}

/** Each role has the rights it needs, and no more: a taken process can do what its role can. */
async function examineRoles(ctx: Context): Promise<Finding[]> {
  const what = 'database roles'
  const lacking = await listLacking(ctx.db)
  if (lacking.length > 0)
    return [{ what, says: `they lack rights: ${describeLacking(lacking)}`, fix: handOver }]
  const makers = await listTableMakers(ctx.db)
  if (makers.length > 0)
    return [{ what, says: `${makers.join(', ')} may make temporary tables`, fix: handOver }]
  const connections = findLive(ctx.config) ? await listConnections(ctx.db) : []
  if (connections.length === 0) return []
  const [wide] = connections.filter(({ isOwn }) => !isOwn)
  if (!wide) return [{ what, says: 'each process has its own', fix: null }]
  const { process, role } = wide
  return [
    {
      what,
      says: `${process} connects as ${role}, which may do more than it needs`,
      fix: `Let it connect as farthing_${process}, or a member of that: see docs/roles.md.`,
    },
  ]
}

async function examineStores(ctx: Context): Promise<Finding[]> {
  const stores = await listStores(ctx.db)
  const isEmpty = stores.length === 0
  return [
    {
      what: 'stores',
      says: isEmpty ? 'none yet' : `${stores.length}`,
      fix: isEmpty ? 'Create one: farthing-admin store create --name NAME --evm-wallet ADDRESS' : null,
    },
  ]
}

/** Whether every stored webhook secret is sealed, and can be opened. */
async function examineSecrets(ctx: Context): Promise<Finding[]> {
  const what = 'webhook secrets'
  const { secretsKeyFile: file } = ctx.config
  const used = await countByKey(ctx.db)
  const sum = (some: typeof used) => some.reduce((total, { endpoints }) => total + endpoints, 0)
  if (file === '') {
    const live = findLive(ctx.config)
    const fix = `Make a key, farthing-admin secrets create --out FILE, and set SECRETS_KEY_FILE=FILE for serve and work.`
    if (live) return [{ what, says: `not sealed, although ${live.id} is a live network`, fix }]
    return used.some(({ keyId }) => keyId !== '')
      ? [
          {
            what,
            says: 'sealed, but SECRETS_KEY_FILE is not set',
            fix: 'Set it to the file that sealed them.',
          },
        ]
      : []
  }
  let keys: readonly SecretsKey[]
  try {
    keys = readSecretsKeys(file)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return [{ what, says: error.message, fix: 'Correct the file, or make it readable for this user.' }]
  }
  const [first] = keys
  const missing = used.filter(({ keyId }) => keyId !== '' && !keys.some(({ id }) => id === keyId))
  const ids = missing.map(({ keyId }) => keyId).join(', ')
  if (missing.length > 0) {
    const fix = `Put them back into ${file}. If they are lost, the stores must roll these secrets.`
    return [{ what, says: `those of ${sum(missing)} endpoints need keys that are missing: ${ids}`, fix }]
  }
  const stale = used.filter(({ keyId }) => keyId !== first?.id)
  if (stale.length > 0) {
    const says = `those of ${sum(stale)} endpoints are not sealed with the first key, ${first?.id}`
    return [{ what, says, fix: 'Run: farthing-admin secrets rotate' }]
  }
  return [{ what, says: `sealed with key ${first?.id}`, fix: null }]
}

async function examineEvents(ctx: Context): Promise<Finding[]> {
  const what = 'events'
  const found = await findStandstill(ctx)
  return found.length > 0
    ? found.map((finding) => ({ what, ...finding }))
    : [{ what, says: 'numbered as they come', fix: null }]
}

async function examineBooks(ctx: Context): Promise<Finding[]> {
  return (await findRefused(ctx.db)).map((finding) => ({ what: 'books', ...finding }))
}

async function examineRates(ctx: Context): Promise<Finding[]> {
  if (ctx.config.ecbRatesUrl === '' && ctx.config.exchangeRatesUrl === '') return []
  const currencies = await listCurrencies(ctx, ctx.now())
  return [
    {
      what: 'rates',
      says: `${currencies.length} ${currencies.length === 1 ? 'currency' : 'currencies'} can be priced`,
      fix:
        currencies.length > 1
          ? null
          : 'Only USD works. Check that work can reach ECB_RATES_URL or EXCHANGE_RATES_URL, or set both to an empty value if USD is enough.',
    },
  ]
}

async function examineNetwork(
  ctx: Context,
  rails: Rails,
  rail: Rail,
  readSigners: () => Promise<readonly AnySigner[]>,
): Promise<Finding[]> {
  const { providers, network } = rail
  const what = network.id
  const setting = `${network.id}_RPC_URLS`
  if (!rail.hasSettlers) return [{ what, says: 'needs no node and no settler', fix: null }]
  if (providers === 0) {
    const fix = `List its nodes in ${setting}, or remove it from NETWORKS.`
    return [{ what, says: 'has no nodes, so nothing can be settled there', fix }]
  }
  const nodes = `${what} nodes`
  const reach = `Check that every address in ${setting} can be reached from here and is a node of ${network.name}.`
  try {
    const answered = await rail.countAnswering()
    const says = `${answered} of ${providers} answer for this chain`
    const more = `List nodes of at least ${network.witnessesMin} providers in ${setting}: a single one is not trusted.`
    if (providers < network.witnessesMin) return [{ what: nodes, says, fix: more }]
    if (answered < providers) return [{ what: nodes, says, fix: reach }]
    const differences = await rail.findDifferences()
    return [
      { what: nodes, says, fix: null },
      ...differences.map((difference) => ({ what, ...difference })),
      ...(await examineNodes(ctx, rail)),
      ...(await examineWitnesses(ctx, network)),
      ...(await examineSettlers(ctx, rails, rail, readSigners)),
    ]
  } catch (error) {
    if (!isNodeError(error)) throw error
    return [{ what: nodes, says: error.message, fix: reach }]
  }
}

/** Tries out what each node can do, and adds what the running processes have found. */
async function examineNodes(ctx: Context, rail: Rail): Promise<Finding[]> {
  const { id, isLocal } = rail.network
  const records = await listLimitsRecords(ctx.db)
  const nodes = (await rail.probe()).flatMap(({ provider, host, says, troubles }): Finding[] => {
    const what = `${id} node ${provider === host ? host : `${provider} (${host})`}`
    const found = records.find((each) => each.network === id && each.provider === provider)
    const later = found ? `; work found: ${describeLimits(found)}` : ''
    const plan = describePlan(rail.nodeCosts, host)
    const costs = plan === null ? '' : `; ${plan}`
    if (troubles.length === 0) return [{ what, says: `${says}${later}${costs}`, fix: null }]
    return troubles.map((trouble) => ({
      what,
      says: trouble.says,
      fix: `Replace it in ${id}_RPC_URLS by a node ${trouble.wanted}.`,
    }))
  })
  return isLocal ? nodes : [...nodes, { what: `${id} calls`, says: describeCalls(rail.nodeCosts), fix: null }]
}

async function examineWitnesses(ctx: Context, { id, caip2 }: Network): Promise<Finding[]> {
  const what = `${id} nodes`
  const faults = await listFaults(ctx.db, caip2)
  const follower = await readFollower(ctx.db, caip2)
  return [
    ...faults.map(({ provider, fault, faults: times }) => ({
      what,
      says: `${provider} reported something false ${times} times since yesterday, last ${fault}`,
      fix: `Replace the provider ${provider} in ${id}_RPC_URLS.`,
    })),
    ...(follower?.dispute
      ? [
          {
            what,
            says: `the providers contradict each other about ${follower.dispute}, so payments are refused`,
            fix: `Find out which one is wrong, for example with a block explorer, and remove it from ${id}_RPC_URLS.`,
          },
        ]
      : []),
  ]
}

async function examineSettlers(
  ctx: Context,
  rails: Rails,
  rail: Rail,
  readSigners: () => Promise<readonly AnySigner[]>,
): Promise<Finding[]> {
  const { id, caip2 } = rail.network
  const what = `${id} settlers`
  const settlers = (await listSettlers(ctx.db, caip2)).filter(({ state }) => state === 'active')
  if (settlers.length === 0) {
    const fix = `Add one: farthing-admin settler add ${id} ADDRESS, and put its key into the SETTLER_KEYS_FILE of work.`
    return [{ what, says: 'none is active, so nothing can be settled', fix }]
  }
  const findings: Finding[] = []
  // These settings exist only where work runs; serve holds no keys.
  const { settlerKeysFile, signerSocket } = ctx.config
  if (settlerKeysFile !== '' || signerSocket !== '') {
    const held = await readSigners().catch((error: unknown) => {
      if (error instanceof SignerAwayError) return error
      throw error
    })
    if (held instanceof Error) {
      const fix = 'Start signer, with the same SIGNER_SOCKET. Payments get 503 until it runs.'
      return [{ what, says: held.message, fix }]
    }
    const keys = new Set(held.map(({ address }) => address))
    const place = settlerKeysFile || 'the SETTLER_KEYS_FILE of signer, and restart signer'
    for (const { address } of settlers.filter(({ address }) => !keys.has(address))) {
      const fix = `Put its key into ${place}, or drain it: farthing-admin settler drain ${address} --network ${id}`
      findings.push({ what, says: `the key of ${address} is missing`, fix })
    }
  }
  for (const { address, nonce } of await listStopped(ctx.db, caip2))
    findings.push({
      what,
      says: `${address} is stopped: its nonce ${nonce} was used by a transaction that is not ours`,
      fix: `Find out who has its key. If another deployment has it, or it may be stolen: farthing-admin settler drain ${address} --network ${id}, and remove the key. If you sent that transaction yourself: farthing-admin settler add ${id} ${address}`,
    })
  for (const runway of await readRunways(ctx, rail)) {
    const says = `${runway.address}: ${describeRunway(rail.network, runway)}`
    findings.push({ what, says, fix: findShortage(rail.network, runway) })
  }
  const obstacle = await openReadiness(ctx, rails)(caip2)
  findings.push({
    what: `${id} settling`,
    says: obstacle ?? 'payments can be settled now',
    fix: obstacle === null ? null : checkWork,
  })
  return findings
}

/** What to do about a settler that pays for nothing now, or soon will not; null if it lasts. */
function findShortage({ id, nativeCurrency }: Network, runway: Runway): string | null {
  const { balance, needed, isUnfunded, paymentsLeft, hoursLeft } = runway
  if (balance === null || paymentsLeft === null) return checkWork
  if (needed === null) return 'Wait until fees fall.'
  const isLow = hoursLeft === null ? paymentsLeft < paymentsLeftWanted : hoursLeft < hoursLeftWanted
  return isUnfunded || isLow ? `Send it ${nativeCurrency.symbol} on ${id}.` : null
}
