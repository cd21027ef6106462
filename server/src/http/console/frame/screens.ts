import type { Membership } from '../../../members/member.ts'
import { mayAct, type Right } from '../../../members/rights.ts'
import type { Texts } from '../texts/choose.ts'

export type ScreenId = keyof Texts['frame']['screens']

/** An entry of the navigation. Its icon is an SVG path in a square of 16. */
type Screen = {
  readonly id: ScreenId
  readonly path: string
  readonly icon: string
  /** In the bar at the bottom of a phone; the others are behind More. */
  readonly isMain?: boolean
  /** Parted from the entry before it. */
  readonly isApart?: boolean
}

/** What a store's members see in the navigation, in this order, as far as their role allows. */
const storeScreens: readonly (Screen & { readonly right: Right })[] = [
  {
    id: 'home',
    path: '',
    right: 'payments:read',
    isMain: true,
    icon: 'M2.5 7.25 8 2.75l5.5 4.5v6h-3.75V9.5h-3.5v3.75H2.5z',
  },
  {
    id: 'payments',
    path: '/payments',
    right: 'payments:read',
    isMain: true,
    icon: 'M1.75 4.25h12.5v8.5H1.75zM1.75 7h12.5M4 10.5h2.5',
  },
  {
    id: 'inbox',
    path: '/inbox',
    right: 'payments:read',
    isMain: true,
    icon: 'M1.75 9 4 3h8l2.25 6v4H1.75zM1.75 9h3.5l1 1.75h3.5l1-1.75h3.5',
  },
  {
    id: 'refunds',
    path: '/refunds',
    right: 'refunds:read',
    icon: 'M5.5 2.75 2.25 6l3.25 3.25M2.25 6h8a3.5 3.5 0 0 1 0 7.25H5',
  },
  {
    id: 'reports',
    path: '/reports',
    right: 'payments:read',
    icon: 'M3.25 2.25h7l2.5 2.5v9H3.25zM5.5 11.25v-2M8 11.25v-5M10.5 11.25v-3.5',
  },
  {
    id: 'wallets',
    path: '/wallets',
    right: 'wallets:read',
    isApart: true,
    icon: 'M12.5 6V3.5h-9a1.25 1.25 0 0 0 0 2.5H14v7H3.5A1.25 1.25 0 0 1 2.25 11.75v-7M11 9.5h.1',
  },
  {
    id: 'developers',
    path: '/developers',
    right: 'developers:read',
    icon: 'M5.25 4.25 1.5 8l3.75 3.75M10.75 4.25 14.5 8l-3.75 3.75M9.25 3l-2.5 10',
  },
  {
    id: 'branding',
    path: '/branding',
    right: 'branding:read',
    icon: 'm13.75 2.25-6.5 6.5M9 10.5 5.5 7M5.25 9.25c-1.75 0-2.25 1-2.5 2.25-.2 1-.75 1.5-1.25 1.75 3 .75 5.5.25 5.75-2.25',
  },
  {
    id: 'team',
    path: '/members',
    right: 'members:read',
    icon: 'M6 7.75a2.4 2.4 0 1 0 0-4.8 2.4 2.4 0 0 0 0 4.8zM1.75 13.25c.2-2.4 1.9-3.75 4.25-3.75s4.05 1.35 4.25 3.75M10.75 3.2a2.4 2.4 0 0 1 0 4.4M12.4 9.9c1.2.6 1.8 1.8 1.85 3.35',
  },
  {
    id: 'activity',
    path: '/activity',
    right: 'activity:read',
    icon: 'M1.75 8.25h3l1.75-5 3 9.5 1.75-4.5h3',
  },
]

/** For operators, below one path. */
export const operatorScreens: readonly Screen[] = [
  {
    id: 'stores',
    path: '/stores',
    isMain: true,
    icon: 'M2.5 6.5 3.75 2.75h8.5L13.5 6.5M2.5 6.5a1.85 1.85 0 0 0 3.67 0 1.85 1.85 0 0 0 3.66 0 1.85 1.85 0 0 0 3.67 0M3.5 8.5v4.75h9V8.5',
  },
  {
    id: 'settlers',
    path: '/settlers',
    isMain: true,
    icon: 'M3.25 13.25v-9.5a1 1 0 0 1 1-1h4a1 1 0 0 1 1 1v9.5M2.25 13.25h8M5 5h2.5M9.25 7.5h1.25a1 1 0 0 1 1 1v2a1 1 0 0 0 2 0V6l-1.75-1.75',
  },
  {
    id: 'chains',
    path: '/chains',
    isMain: true,
    icon: 'M6.75 9.25a2.5 2.5 0 0 0 3.55 0l2.2-2.2a2.5 2.5 0 0 0-3.55-3.55l-.95.95M9.25 6.75a2.5 2.5 0 0 0-3.55 0l-2.2 2.2a2.5 2.5 0 0 0 3.55 3.55l.95-.95',
  },
  { id: 'queues', path: '/queues', isMain: true, icon: 'M2.5 4h11M2.5 8h11M2.5 12h6' },
  { id: 'doctor', path: '/doctor', icon: 'M2 8.5h2.75L6.5 4l3 8 1.75-3.5H14' },
]

export function screensOf({ role }: Membership): readonly Screen[] {
  return storeScreens.filter(({ right }) => mayAct(role, right))
}

/** Where a member of a store begins. */
export function startOf(store: Membership): string {
  const [first] = screensOf(store)
  return first ? `/stores/${store.storeId}${first.path}` : '/account'
}
