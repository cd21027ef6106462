/** Addresses that must never be reached, and the ways a URL can spell them. */

/** Stands for a public receiver inside the namespace, where the real one cannot be reached. */
export const publicAddress = '8.8.4.4'

export const privateAddresses = [
  '10.1.2.3',
  '10.255.255.254',
  '100.64.0.1',
  '100.127.255.254',
  '127.0.0.2',
  '127.255.255.254',
  '169.254.169.254',
  '169.254.170.2',
  '172.16.0.1',
  '172.31.255.254',
  '192.0.0.192',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.0.1',
  '192.168.255.254',
  '198.18.0.1',
  '198.19.255.254',
  '198.51.100.7',
  '203.0.113.9',
  '64:ff9b::a01:203',
  '100::1',
  '2001::1',
  '2001:10::1',
  '2001:db8::1',
  '2002:a01:203::1',
  '3fff::1',
  'fc00::1',
  'fd12:3456:789a::1',
  'fec0::1',
]

const hosts = privateAddresses.filter((address) => !address.includes(':'))
const number = (address: string) =>
  address.split('.').reduce((sum, part) => sum * 256 + Number.parseInt(part, 10), 0)
const parts = (address: string) => address.split('.').map((part) => Number.parseInt(part, 10))
const hex = (value: number) => `0x${value.toString(16)}`
const octal = (value: number) => `0${value.toString(8)}`

/** The ways a URL can spell an IPv4 address: to a browser or to inet_aton, all of them mean the same host. */
function spellings(address: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = parts(address)
  return [
    address,
    String(number(address)),
    hex(number(address)),
    octal(number(address)),
    parts(address).map(hex).join('.'),
    parts(address).map(octal).join('.'),
    `${a}.${b * 65_536 + c * 256 + d}`,
    `${a}.${b}.${c * 256 + d}`,
    `[::ffff:${address}]`,
    `[::${address}]`,
    `[64:ff9b::${address}]`,
    `[2002:${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}::]`,
    [...address]
      .map((character) =>
        /\d/.test(character) ? String.fromCodePoint(0xff10 + Number.parseInt(character, 10)) : '。',
      )
      .join(''),
    `${address}.`,
  ]
}

const schemes = ['https://']

export const forms: readonly string[] = [
  ...[
    '127.0.0.1',
    '169.254.169.254',
    '10.1.2.3',
    '192.168.0.1',
    '172.16.0.1',
    '100.64.0.1',
    '0.0.0.0',
    '255.255.255.255',
    '224.0.0.1',
  ]
    .flatMap(spellings)
    .flatMap((host) => schemes.map((scheme) => `${scheme}${host}/`)),
  ...hosts.map((host) => `https://${host}/`),
  ...privateAddresses.filter((address) => address.includes(':')).map((address) => `https://[${address}]/`),
  ...[
    'localhost',
    'LOCALHOST',
    'localhost.',
    'any.localhost',
    'ⓛocalhost',
    '[::]',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:7f00:1]',
    '[fe80::1]',
    '[ff02::1]',
    '[2001:0:7f00:1::]',
    '0',
    '127.1',
    '127.0.1',
    '0177.1',
    '0x7f.1',
    '2130706433',
    '017700000001',
    '0x7f000001',
    '127。0。0。1',
    '①②⑦.0.0.1',
  ].flatMap((host) => [`https://${host}/`, `https://${host}:8443/`, `https://${host}:9402/`]),
  ...['https://8.8.4.4:22/', 'https://8.8.4.4:5432/', 'https://8.8.4.4:9402/', 'https://8.8.4.4:80/'],
  ...[
    'http://127.0.0.1:9402/',
    'http://localhost:5432/',
    'http://[::1]:9402/',
    'http://10.1.2.3/',
    'http://169.254.169.254/latest/meta-data/',
  ],
]
