/** The files in ops/ that operators copy: each is checked by the program that reads it, and against the docs. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { commands } from '../src/commands/table.ts'
import { openMetrics } from '../src/metrics.ts'
import { atEnd } from './support/at-end.ts'

const root = new URL('../../', import.meta.url).pathname
const read = (file: string) => readFileSync(join(root, file), 'utf8')

type Alert = {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly runbook: string }
}
const alerts: readonly Alert[] = parse(read('ops/prometheus/alerts.yml')).groups[0].rules

test('Prometheus accepts the scrape configuration and the alerts', () => {
  execFileSync('promtool', ['check', 'config', 'prometheus.yml'], {
    cwd: join(root, 'ops/prometheus'),
    stdio: 'pipe',
  })
})

test('the runbook has one section for each alert, and each alert names its section', () => {
  const sections = [...read('docs/runbook.md').matchAll(/^## (.+)$/gm)].map(([, title]) => title)
  assert.deepEqual(
    alerts.map(({ alert }) => alert),
    sections,
  )
  for (const { alert, annotations, labels } of alerts) {
    assert.equal(annotations.runbook, `docs/runbook.md#${alert.toLowerCase()}`)
    assert.match(labels.severity, /^(page|ticket)$/)
  }
})

test('alerts and dashboard use only metrics and labels that exist', () => {
  const known = new Map(
    openMetrics()
      .registry.getMetricsAsArray()
      .map((metric) => [metric.name, (metric as unknown as { labelNames: readonly string[] }).labelNames]),
  )
  const expressions = [
    ...alerts.map(({ expr }) => expr),
    ...[...read('ops/grafana/farthing.json').matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)].map(([, text]) =>
      JSON.parse(text ?? ''),
    ),
  ]
  assert(expressions.length > 40)
  for (const expression of expressions) {
    const names = [
      ...expression.matchAll(/\b((?:farthing|http_server)_\w+?)(?:_bucket|_sum|_count)?\b(?=[[{)\s]|$)/g),
    ]
    for (const [, name = ''] of names) assert(known.has(name), `${name} in ${expression}`)
    const labels = names.flatMap(([, name = '']) => known.get(name) ?? [])
    const scraped = ['le', 'job', 'instance', 'cell']
    for (const [, by = ''] of expression.matchAll(/ by \(([^)]*)\)/g))
      for (const label of by.split(', '))
        assert([...labels, ...scraped].includes(label), `${label} in ${expression}`)
  }
})

test('where one Prometheus watches several cells, what one of them does hides nothing of another', () => {
  for (const { alert, expr } of alerts.filter(({ alert }) => alert !== 'FarthingDown'))
    for (const [, over] of expr.matchAll(/\b(?:sum|min|max)\b(.{0,10})/g))
      assert.match(over ?? '', /^ by \(cell/, alert)
  const folder = mkdtempSync(join(tmpdir(), 'farthing-alerts-'))
  atEnd(() => rmSync(folder, { recursive: true }))
  const made =
    'http_server_request_duration_seconds_count{route="/api/v1/checkouts",method="POST",status="201"'
  const { labels, annotations } =
    alerts.find(({ alert }) => alert === 'FarthingEventsStandStill') ?? assert.fail()
  const rules = {
    rule_files: [join(root, 'ops/prometheus/alerts.yml')],
    tests: [
      {
        interval: '1m',
        input_series: [
          { series: 'farthing_events_sequenced_total{cell="00"}', values: '0+10x20' },
          { series: 'farthing_events_sequenced_total{cell="01"}', values: '7x20' },
          { series: `${made},cell="00"}`, values: '0+10x20' },
          { series: `${made},cell="01"}`, values: '0+10x20' },
        ],
        alert_rule_test: [
          {
            eval_time: '15m',
            alertname: 'FarthingEventsStandStill',
            exp_alerts: [{ exp_labels: { ...labels, cell: '01' }, exp_annotations: annotations }],
          },
        ],
      },
    ],
  }
  const file = join(folder, 'rules.yml')
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(rules))
  execFileSync('promtool', ['test', 'rules', file], { stdio: 'pipe' })
})

test('systemd accepts the units, and they give away little', () => {
  const folder = mkdtempSync(join(tmpdir(), 'farthing-units-'))
  atEnd(() => rmSync(folder, { recursive: true }))
  const units = readdirSync(join(root, 'ops/systemd'))
  assert.equal(units.length, 9)
  for (const unit of units) {
    // This machine has the command elsewhere, and none of the folders, users and other services of a deployment.
    const text = read(`ops/systemd/${unit}`)
      .replaceAll('/usr/local/bin/farthing-admin', join(root, 'server/farthing-admin.cjs'))
      .replaceAll('/etc/farthing/alarm', '/bin/true')
      .replaceAll(/^(After|Wants|Documentation)=.*\n/gm, '')
    writeFileSync(join(folder, unit.replace('@', '@8402')), text)
  }
  const files = readdirSync(folder).map((unit) => join(folder, unit))
  const verified = spawnSync('systemd-analyze', ['verify', '--man=no', ...files], { encoding: 'utf8' })
  const said = verified.stderr.split('\n').filter((line) => line.includes('farthing'))
  assert.deepEqual(said, [])
  for (const file of files.filter((name) => name.endsWith('.service')))
    execFileSync('systemd-analyze', ['security', '--offline=yes', '--threshold=20', file], { stdio: 'pipe' })
})

test('in containers, farthing-admin runs each command as the service whose login it needs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'farthing-compose-'))
  atEnd(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'docker'), '#!/bin/sh\necho "$PWD: $*"\n', { mode: 0o755 })
  const run = (...args: readonly string[]) =>
    execFileSync(join(root, 'ops/compose/farthing-admin'), args, {
      encoding: 'utf8',
      cwd: folder,
      env: { PATH: `${folder}:${process.env.PATH}` },
    }).trim()
  const here = root.replace(/\/$/, '')
  assert.equal(run('doctor'), `${here}: compose run --rm operator doctor`)
  assert.equal(run('migrate'), `${here}: compose run --rm migrate migrate`)
  assert.equal(run('retention', 'export'), `${here}: compose run --rm operator retention export`)
  assert.equal(
    run('settler', 'create', 'BASE_MAINNET'),
    `${here}: compose run --rm --no-deps -v ${here}/settler.keys:/new.keys operator settler create BASE_MAINNET --out /new.keys`,
  )
  const owned = commands.filter(({ role }) => role === 'owner').map(({ words }) => words.split(' '))
  for (const words of owned) assert.match(run(...words), /run --rm migrate /, words.join(' '))
})
