/** The load of `pay.ts`: concurrent payments over HTTP, and the processor time they cost. */
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Payer } from './pay-chain.ts'

/** A payment that is signed and only needs to be sent. */
export type Ready = { readonly payer: Payer; readonly url: string; readonly header: string }

export type Load = {
  /** Payers whose answer was 200. */
  readonly paid: readonly Payer[]
  readonly latenciesMs: readonly number[]
  /** How often each final answer came. */
  readonly answers: ReadonlyMap<string, number>
  /** How often a payer was told to come back later (503). */
  readonly unavailable: number
  /** From the first request to the last answer, or to the time limit. */
  readonly elapsedMs: number
}

/** "Not known yet" and "not now", after which a client repeats the same request. 502 and 504 come from a proxy. */
const repeated = new Set([202, 409, 502, 503, 504])
const repeatMs = 250
/** Connections are opened beforehand, a few at a time: the benchmark measures payments, not connecting. */
const openedAtOnce = 50

/** Keeps `inFlight` payments in flight until all are answered or the time is up. */
export async function pay(payments: readonly Ready[], inFlight: number, limitMs: number): Promise<Load> {
  const stopping = new AbortController()
  const paid: Payer[] = []
  const latenciesMs: number[] = []
  const answers = new Map<string, number>()
  const origin = new URL('/', payments[0]?.url).href
  const agents = await openConnections(origin, Math.min(inFlight, payments.length))
  const start = performance.now()
  const deadline = start + limitMs
  let next = 0
  let lastAt = start
  let unavailable = 0

  async function goOn(agent: Agent): Promise<void> {
    for (;;) {
      const payment = payments[next++]
      if (!payment || performance.now() >= deadline) return
      const sentAt = performance.now()
      const { status, reason } = await settle(agent, payment)
      if (performance.now() > deadline) return
      lastAt = performance.now()
      answers.set(reason, (answers.get(reason) ?? 0) + 1)
      if (status !== 200) continue
      paid.push(payment.payer)
      latenciesMs.push(lastAt - sentAt)
    }
  }

  async function settle(agent: Agent, { url, header }: Ready): Promise<Answer> {
    for (;;) {
      const answer = await send(agent, 'POST', url, { 'payment-signature': header }, stopping.signal)
      if (answer.status === 503) unavailable++
      if (!repeated.has(answer.status) || performance.now() > deadline) return answer
      await wait(repeatMs)
    }
  }

  const timer = setTimeout(() => stopping.abort(), limitMs)
  await Promise.all(agents.map(goOn))
  clearTimeout(timer)
  for (const agent of agents) agent.destroy()
  const elapsedMs = stopping.signal.aborted ? limitMs : lastAt - start
  return { paid, latenciesMs, answers, unavailable, elapsedMs }
}

/** One answer to one request, and when it came: ms since the request, and since the load began. */
export type Timed = Answer & { readonly tookMs: number; readonly atMs: number }

/**
 * Keeps `inFlight` payers busy for some seconds: each sends one payment after the other, and repeats it as its
 * Retry-After says until it is paid. Then sending stops, and the requests in progress have `graceMs` to be answered.
 * One that is not answered counts as status 0.
 */
export async function press(
  payments: readonly Ready[],
  inFlight: number,
  seconds: number,
  graceMs: number,
): Promise<Timed[]> {
  const answers: Timed[] = []
  const agents = await openConnections(new URL('/', payments[0]?.url).href, inFlight)
  const stopping = new AbortController()
  const start = performance.now()
  const end = start + seconds * 1_000
  let next = 0

  async function goOn(agent: Agent): Promise<void> {
    for (let payment = payments[next++]; payment; payment = payments[next++]) {
      for (;;) {
        const sentAt = performance.now()
        if (sentAt >= end) return
        const headers = { 'payment-signature': payment.header }
        const answer = await send(agent, 'POST', payment.url, headers, stopping.signal)
        const now = performance.now()
        answers.push({ ...answer, tookMs: now - sentAt, atMs: now - start })
        if (!repeated.has(answer.status)) break
        await wait(Math.max(0, Math.min(answer.retryAfterSeconds * 1_000 || repeatMs, end - now)))
      }
    }
  }

  const timer = setTimeout(() => stopping.abort(), seconds * 1_000 + graceMs)
  await Promise.all(agents.map(goOn))
  clearTimeout(timer)
  for (const agent of agents) agent.destroy()
  return answers
}

/** Each payer has its own connection, opened by a HEAD request. */
async function openConnections(origin: string, count: number): Promise<Agent[]> {
  const agents = Array.from({ length: count }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  for (let i = 0; i < count; i += openedAtOnce)
    await Promise.all(
      agents
        .slice(i, i + openedAtOnce)
        .map((agent) => send(agent, 'HEAD', origin, {}, AbortSignal.timeout(10_000))),
    )
  return agents
}

type Answer = { readonly status: number; readonly reason: string; readonly retryAfterSeconds: number }

function send(
  agent: Agent,
  method: string,
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve) => {
    const fail = (error: Error) =>
      resolve({ status: 0, reason: signal.aborted ? 'out of time' : error.message, retryAfterSeconds: 0 })
    const options = { method, agent, signal, headers: { ...headers, 'content-length': 0 } }
    const sent = request(url, options, (response) => {
      let body = ''
      response.on('data', (chunk) => {
        body += chunk
      })
      response.on('error', fail)
      response.on('end', () => {
        const status = response.statusCode ?? 0
        resolve({
          status,
          reason: status === 200 ? '200' : `${status} ${reasonIn(body)}`,
          retryAfterSeconds: Number.parseInt(response.headers['retry-after'] ?? '0', 10),
        })
      })
    })
    sent.on('error', fail)
    sent.end()
  })
}

function reasonIn(body: string): string {
  try {
    const { error, errorReason, errorMessage, code, detail } = JSON.parse(body)
    return String(errorMessage ?? errorReason ?? error ?? detail ?? code).slice(0, 80)
  } catch {
    return body.slice(0, 80)
  }
}

const ticksPerSecond = 100

/** User and system time that a process and its children have used, in ms. */
export function cpuMs(pid: number): number {
  let ticks = 0
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const stat = readStat(entry)
    if (!stat) continue
    // The process's own entry includes the time of children that have exited.
    if (stat.pid === pid) ticks += stat.own + stat.ended
    else if (stat.parent === pid) ticks += stat.own
  }
  return (ticks * 1_000) / ticksPerSecond
}

/** Finds a child of this process by name. */
export function findChild(name: string): number {
  for (const entry of readdirSync('/proc')) {
    const stat = /^\d+$/.test(entry) ? readStat(entry) : null
    if (stat?.parent === process.pid && stat.name === name) return stat.pid
  }
  throw new Error(`no child process named ${name}`)
}

function readStat(pid: string) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))
    // Counted from the state field: the parent is the 2nd; utime, stime, cutime and cstime are the 12th to 15th.
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map((field) => Number.parseInt(field, 10))
    const at = (i: number) => fields[i] ?? 0
    return {
      pid: Number.parseInt(pid, 10),
      name,
      parent: at(1),
      own: at(11) + at(12),
      ended: at(13) + at(14),
    }
  } catch {
    // The process has exited in the meantime.
    return null
  }
}
