import { randomBytes } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Answers } from './answers.ts'

/**
 * The files that `setup` writes: the settings, logins, units and proxy configuration of docs/deploying.md, filled in
 * with the answers, and a script that installs them. This function applies nothing.
 */
type SetupFile = { readonly name: string; readonly text: string; readonly isSecret: boolean }

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const roles = ['owner', 'serve', 'work', 'console', 'operator', 'audit'] as const
const readRoot = (name: string) => readFileSync(`${root}${name}`, 'utf8')

export function drawFiles(answers: Answers): SetupFile[] {
  const passwords = new Map(roles.map((role) => [role, randomBytes(24).toString('hex')]))
  const url = (role: (typeof roles)[number]) =>
    `postgres://farthing_${role}:${passwords.get(role)}@127.0.0.1:5432/farthing`
  const { consoleHost } = answers
  const logins = roles.map((role) => ({
    name: `${role}.env`,
    isSecret: true,
    text: lines(
      `DATABASE_URL=${url(role)}`,
      // The console runs in serve, with its own database role.
      ...(role === 'serve' && consoleHost !== '' ? [`CONSOLE_DATABASE_URL=${url('console')}`] : []),
      ...(role === 'operator' ? ['SETTLER_KEYS_FILE=/etc/farthing/settler.keys'] : []),
    ),
  }))
  const sql = [...passwords].map(
    ([role, password]) => `alter role farthing_${role} login password '${password}';`,
  )
  return [
    { name: 'env', isSecret: true, text: drawSettings(answers) },
    ...logins,
    { name: 'passwords.sql', isSecret: true, text: lines(...sql) },
    ...globSync('ops/systemd/*', { cwd: root }).map((name) => ({
      name: `systemd/${basename(name)}`,
      isSecret: false,
      text: readRoot(name),
    })),
    {
      name: 'nginx/farthing',
      isSecret: false,
      text: drawSite('farthing.conf', 'pay.example.com', answers.host),
    },
    ...(consoleHost === ''
      ? []
      : [
          {
            name: 'nginx/farthing-console',
            isSecret: false,
            text: drawSite('console.conf', 'console.example.com', consoleHost),
          },
        ]),
    { name: 'install.sh', isSecret: false, text: drawScript(answers) },
  ]
}

function lines(...all: readonly string[]): string {
  return all.map((line) => `${line}\n`).join('')
}

function drawSettings({ host, consoleHost, network, nodes, mail, mailFrom }: Answers): string {
  return lines(
    `BASE_URL=https://${host}`,
    ...(consoleHost === '' ? [] : [`CONSOLE_URL=https://${consoleHost}`]),
    `NETWORKS=${network.id}`,
    `${network.id}_RPC_URLS=${nodes}`,
    'TRUSTED_PROXIES=127.0.0.1',
    'SECRETS_KEY_FILE=/etc/farthing/secrets.keys',
    ...(mail === '' ? [] : [`SMTP_URL=${mail}`, `MAIL_FROM=${mailFrom}`]),
  )
}

function drawSite(file: string, example: string, host: string): string {
  return readRoot(`ops/nginx/${file}`)
    .replace(/^# .*\n(# .*\n)*/, '')
    .replaceAll(example, host)
}

/** Quotes a word for a shell command. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function drawScript({ host, consoleHost, network, name, wallet }: Answers): string {
  const hosts = [host, ...(consoleHost === '' ? [] : [consoleHost])]
  const sites = ['farthing', ...(consoleHost === '' ? [] : ['farthing-console'])]
  const test = network.mode === 'test' ? ' --test' : ''
  return `#!/bin/sh
# Puts what is next to this file in its place, as root. It may be run again: what is done already is not done twice.
set -eu
cd "$(dirname "$0")"
if [ -e /etc/farthing/owner.env ] && ! cmp -s owner.env /etc/farthing/owner.env; then
  echo 'There is another deployment in /etc/farthing, with other passwords. Nothing was changed.' >&2
  echo 'To change that one, edit /etc/farthing/env and restart its units.' >&2
  exit 1
fi

# Users: serve runs as farthing, work as farthing-work.
id -u farthing >/dev/null 2>&1 || useradd --system --create-home --home-dir /var/lib/farthing farthing
id -u farthing-work >/dev/null 2>&1 || useradd --system --home-dir /var/lib/farthing --gid farthing farthing-work

# The database, and a login for each process.
as_postgres() { (cd / && runuser -u postgres -- "$@"); }
as_postgres psql -Atqc "select 1 from pg_database where datname = 'farthing'" | grep -q 1 ||
  as_postgres createdb --encoding UTF8 --template template0 farthing
for file in ${root}server/rights/roles.sql ${root}server/rights/owner.sql passwords.sql; do
  as_postgres psql -q -v ON_ERROR_STOP=1 -d farthing < "$file"
done

# Settings and keys; what is there already stays. systemd reads the logins as root; only work can read the settler's key.
install -d -m 0750 -o root -g farthing /etc/farthing
[ -e /etc/farthing/env ] || install -m 0640 -o root -g farthing env /etc/farthing/
[ -e /etc/farthing/secrets.keys ] || install -m 0640 -o root -g farthing secrets.keys /etc/farthing/
install -m 0600 ${roles.map((role) => `${role}.env`).join(' ')} /etc/farthing/
[ -e /etc/farthing/settler.keys ] || install -m 0600 -o farthing-work -g farthing settler.keys /etc/farthing/

farthing-admin migrate
farthing-admin settler add ${network.id} "$(sed -n 's/^# //p' settler.keys | tail -n 1)"
[ -e store.txt ] || { farthing-admin store create --name=${quote(name)}${test} --${network.family.toLowerCase()}-wallet ${quote(wallet)} > store.new && mv store.new store.txt; }
cat store.txt

cp systemd/* /etc/systemd/system/
systemctl daemon-reload
systemctl enable --now farthing-serve@8402 farthing-serve@8404 farthing-work farthing-audit farthing-doctor.timer

# TLS: without a certificate nginx would not start again.
for host in ${hosts.join(' ')}; do
  if [ ! -e "/etc/letsencrypt/live/$host/fullchain.pem" ]; then
    echo "There is no certificate for $host yet. Get one, then run this script again:"
    echo "  certbot certonly --webroot -w /var/www/html -d $host --deploy-hook 'systemctl reload nginx'"
    exit 1
  fi
done
for site in ${sites.join(' ')}; do
  cp "nginx/$site" "/etc/nginx/sites-available/$site"
  ln -sf "../sites-available/$site" "/etc/nginx/sites-enabled/$site"
done
nginx -t
systemctl reload nginx
`
}
