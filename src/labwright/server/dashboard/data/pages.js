// All pages: used by the navigation, the palette, the `g` keys and the help page.

export const PAGES = [
  { page: "home", label: "Home", icon: "house", href: "#/", key: "h" },
  { page: "runs", label: "Runs", icon: "list", href: "#/runs", key: "r" },
  { page: "sweeps", label: "Sweeps", icon: "layers", href: "#/sweeps", key: "s" },
  { page: "plans", label: "Plans", icon: "workflow", href: "#/plans", key: "p" },
  { page: "chat", label: "Chat", icon: "message-square", href: "#/chat", key: "t" },
  { page: "wild", label: "Wild", icon: "compass", href: "#/wild", key: "w" },
  { page: "compare", label: "Compare", icon: "git-compare", href: "#/compare", key: "m" },
  { page: "cluster", label: "Cluster", icon: "cpu", href: "#/cluster", key: "c" },
  { page: "alerts", label: "Alerts", icon: "bell", href: "#/alerts", key: "a" },
  { page: "skills", label: "Skills", icon: "scroll-text", href: "#/skills", key: "k" },
  { page: "memory", label: "Memory", icon: "bookmark", href: "#/memory", key: "e" },
  { page: "settings", label: "Settings", icon: "settings", href: "#/settings", key: "," },
  { page: "help", label: "Help", icon: "book-open", href: "#/help", key: "?" },
];

export const PHONE_PAGES = new Set(["home", "runs", "sweeps", "chat", "alerts"]); // the others are behind "More"
